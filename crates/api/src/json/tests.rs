use atoll_types::{execution::OneShotRequest, file::ChangeMode, session::CreateSession};

use super::*;

/// What is said about a body that is wrong.
fn blamed<T: Payload + std::fmt::Debug>(body: &str) -> String {
    parse::<T>(body.as_bytes()).unwrap_err()
}

#[test]
fn what_is_wrong_is_named_with_its_field_and_place() {
    let bodies = [
        r#"{"environment":7}"#,
        r#"{"enviroment":"x"}"#,
        r#"{"limits":{"memory":true}}"#,
        r#"{"limits":{"memory":"lots"}}"#,
        r#"{"limits":{"pids":-1}}"#,
        r#"{"limits":{"pids":1.5}}"#,
        r#"{"limits":7}"#,
        r#"{"limits":[]}"#,
        r#"{"mounts":{}}"#,
        r#"{"mounts":[{"host":"/a"}]}"#,
        r#"{"mounts":[["/a","/b"]]}"#,
        r#"{"mounts":[{"host":"/a","guest":"/b","mode":"rwx"}]}"#,
        r#"{"env":["A=1"]}"#,
        r#"{"env":{"A":1}}"#,
        r#"{"trusted":"yes"}"#,
        r#"{"timeout":-3}"#,
        r#"{"command":7}"#,
        r#"{"code":"a","code":"b"}"#,
        "{\n  \"code\": \"a\",\n}",
        r#"{"code":"a"} x"#,
        r#"{"code":"#,
        "[]",
        "null",
        "",
    ];
    let said: Vec<_> =
        bodies.iter().map(|body| format!("{body}\n  {}", blamed::<OneShotRequest>(body))).collect();

    insta::assert_snapshot!(said.join("\n"), @r#"
        {"environment":7}
          `environment`: invalid type: integer `7`, expected a text (line 1, column 16)
        {"enviroment":"x"}
          `enviroment`: unknown field `enviroment`, expected one of `environment`, `engine`, `provider`, `limits`, `mounts`, `trusted`, `code`, `language`, `command`, `file`, `stdin`, `args`, `env`, `cwd`, `timeout` (line 1, column 13)
        {"limits":{"memory":true}}
          `limits.memory`: invalid type: boolean `true`, expected a number of bytes or a text such as "512m" (line 1, column 24)
        {"limits":{"memory":"lots"}}
          `limits.memory`: `lots` is not a size: write bytes, or 512k, 64m, 2g, 1t (line 1, column 26)
        {"limits":{"pids":-1}}
          `limits.pids`: invalid value: integer `-1`, expected a whole number that is not negative (line 1, column 20)
        {"limits":{"pids":1.5}}
          `limits.pids`: invalid type: floating point `1.5`, expected a whole number that is not negative (line 1, column 21)
        {"limits":7}
          `limits`: invalid type: integer `7`, expected an object (line 1, column 11)
        {"limits":[]}
          `limits`: invalid type: list, expected an object
        {"mounts":{}}
          `mounts`: invalid type: object, expected a list (line 1, column 10)
        {"mounts":[{"host":"/a"}]}
          `mounts[0]`: missing field `guest` (line 1, column 24)
        {"mounts":[["/a","/b"]]}
          `mounts[0]`: invalid type: list, expected an object
        {"mounts":[{"host":"/a","guest":"/b","mode":"rwx"}]}
          `mounts[0].mode`: unknown value `rwx`, expected `ro` or `rw` (line 1, column 49)
        {"env":["A=1"]}
          `env`: invalid type: list, expected an object (line 1, column 7)
        {"env":{"A":1}}
          `env.A`: invalid type: integer `1`, expected a text (line 1, column 13)
        {"trusted":"yes"}
          `trusted`: invalid type: string "yes", expected true or false (line 1, column 16)
        {"timeout":-3}
          `timeout`: a time is not negative (line 1, column 13)
        {"command":7}
          `command`: expected a text for the shell or a list of texts (line 1, column 13)
        {"code":"a","code":"b"}
          duplicate field `code` (line 1, column 18)
        {
          "code": "a",
        }
          trailing comma (line 3, column 1)
        {"code":"a"} x
          trailing characters (line 1, column 14)
        {"code":
          `code`: EOF while parsing a value (line 1, column 8)
        []
          the body must be a JSON object
        null
          the body must be a JSON object

          the body must be a JSON object
        "#);
}

#[test]
fn no_answer_speaks_of_rust() {
    let values = ["null", "7", "-7", "1.5", "\"x\"", "[]", "[7]", "{}", "{\"x\":7}", "true"];
    let fields = [
        "environment",
        "engine",
        "timeout",
        "env",
        "limits",
        "mounts",
        "metadata",
        "trusted",
        "code",
        "command",
        "args",
        "cwd",
        "path",
        "mode",
    ];
    let rust = ["struct", "enum", "variant", "u32", "u64", "i64", "f64", "usize", "Request", "::"];
    for (field, value) in fields.iter().flat_map(|field| values.map(|value| (field, value))) {
        let body = format!("{{\"{field}\":{value}}}");
        let answers = [
            parse::<OneShotRequest>(body.as_bytes()).err(),
            parse::<CreateSession>(body.as_bytes()).err(),
            parse::<ChangeMode>(body.as_bytes()).err(),
        ];
        for answer in answers.into_iter().flatten() {
            assert!(!rust.iter().any(|word| answer.contains(word)), "{body}: {answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_comes_whole_is_given_up() {
    let stuck = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());

    let error = read(stuck, 1 << 20).await.unwrap_err();

    assert_eq!(error.problem().code, "timed_out");
}

#[test]
fn a_body_nested_without_end_is_refused() {
    let deep = format!("{{\"limits\":{}", "[".repeat(100_000));

    assert!(parse::<CreateSession>(deep.as_bytes()).is_err());
}

#[test]
fn a_good_body_is_understood() {
    let body = br#" {"environment":"python","provider":"local","env":{"A":"1"},"limits":{"memory":"64m"},"mounts":[{"host":"/a","guest":"/b"}]} "#;

    let request: CreateSession = parse(body).unwrap();

    assert_eq!(request.engine.as_deref(), Some("local"));
    assert_eq!(request.mounts.len(), 1);
}
