//! Real interpreters, where the host has them; where it has not, an error that names them.

use std::path::Path;

use atoll_service::Code;
use atoll_types::execution::Reason;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use crate::world::{World, code};

/// Where the local engine looks for programs.
const PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

fn is_installed(program: &str) -> bool {
    PATH.iter().any(|directory| Path::new(directory).join(program).exists())
}

/// Runs code that prints its first argument and `done`, short and long, and compares.
async fn prints(language: &str, program: &str, text: &str, comment: &str) {
    let world = World::new().await;
    let id = world.session().await.session_id;
    let long = format!("{text}\n{}\n", format!("{comment}\n").repeat(20_000));

    for text in [text, long.as_str()] {
        for cwd in [None, Some("/".to_owned())] {
            let mut request = code(language, text);
            request.args = vec!["-arg".to_owned()];
            request.cwd = cwd;
            let answer = world.service().execute(&id, request).await;
            if is_installed(program) {
                let result = answer.unwrap();
                assert_eq!(result.reason, Reason::Exited, "{}", result.stderr);
                assert_eq!(result.stdout, "-arg done\n", "{}", result.stderr);
            } else {
                let error = answer.unwrap_err();
                assert_eq!(error.code, Code::InterpreterMissing);
                assert!(error.message.contains(program), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn python_runs_or_is_named() {
    prints("python", "python3", "import sys\nprint(sys.argv[1], 'done')", "# more").await;
}

#[tokio::test]
async fn javascript_runs_or_is_named() {
    let text = "const path = require('path');\nconsole.log(process.argv[1], 'done')";
    prints("javascript", "node", text, "// more").await;
}

#[tokio::test]
async fn perl_runs_or_is_named() {
    prints("perl", "perl", "print \"$ARGV[0] done\\n\";", "# more").await;
}

#[tokio::test]
async fn bash_runs_or_is_named() {
    prints("bash", "bash", "words=(\"$1\" done); echo \"${words[@]}\"", "# more").await;
}

#[tokio::test]
async fn c_runs_or_is_named() {
    let text = "#include <stdio.h>\nint main(int n, char **a) { printf(\"%s done\\n\", a[1]); }";
    prints("c", "cc", text, "// more").await;
}

#[tokio::test]
async fn ruby_runs_or_is_named() {
    prints("ruby", "ruby", "puts \"#{ARGV[0]} done\"", "# more").await;
}

#[tokio::test]
async fn python_code_finds_modules_of_its_session() {
    if !is_installed("python3") {
        // What happens then is another test's.
        return;
    }
    let world = World::new().await;
    let id = world.session().await.session_id;
    let module = stream::once(async { Ok(Bytes::from("value = 42")) }).boxed();
    world.service().write_file(&id, "mine.py", module).await.unwrap();
    let short = "import mine\nprint(mine.value)";
    let long = format!("{short}\n{}", "# more\n".repeat(20_000));

    for text in [short, &long] {
        let result = world.service().execute(&id, code("python", text)).await.unwrap();
        assert_eq!(result.stdout, "42\n", "{}", result.stderr);
    }
}
