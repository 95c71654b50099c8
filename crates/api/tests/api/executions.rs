//! Running something to its end, in each form users have scripts with.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_session_keeps_its_files_between_executions() {
    World::run(async |world| {
        let id = world.session().await;
        let target = format!("/api/sessions/{id}/execute");

        let wrote = world.post(&target, json!({ "command": "echo kept > note" })).await;
        let read = world
            .post(
                &target,
                json!({ "code": "cat; cat note; exit 3", "language": "sh", "stdin": "in\n" }),
            )
            .await;

        assert_eq!((wrote.status, wrote.json()["status"].as_str()), (200, Some("succeeded")));
        let result = read.json();
        assert_eq!(read.status, 200);
        assert_eq!(result["stdout"], "in\nkept\n");
        assert_eq!(result["exit_code"], 3);
        assert_eq!(result["reason"], "exited");
        assert_eq!(result["status"], "failed");
        assert_eq!(result["session_id"], id.as_str());
    })
    .await;
}

#[tokio::test]
async fn a_one_shot_runs_with_and_without_the_prefix() {
    World::run(async |world| {
        for target in ["/api/execute/sync", "/execute/sync"] {
            let body = json!({ "environment": "bash", "code": "echo $1 $WORD", "language": "bash",
                               "args": ["hello"], "env": { "WORD": "world" }, "trusted": true });

            let reply = world.post(target, body).await;

            assert_eq!(reply.status, 200, "{reply:?}");
            assert_eq!(reply.json()["stdout"], "hello world\n");
        }
    })
    .await;
}

#[tokio::test]
async fn a_timeout_is_a_result_and_not_an_error() {
    World::run(async |world| {
        let body = json!({ "command": "sleep 1000", "timeout": 0.5, "trusted": true });

        let reply = world.post("/api/execute/sync", body).await;

        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.json()["reason"], "timeout");
    })
    .await;
}

#[tokio::test]
async fn what_is_to_run_is_said_once() {
    World::run(async |world| {
        for body in [
            json!({ "trusted": true }),
            json!({ "trusted": true, "code": "1", "language": "sh", "command": "true" }),
        ] {
            let reply = world.post("/api/execute/sync", body).await;

            assert_eq!((reply.status, reply.code().as_str()), (400, "invalid_request"));
        }
    })
    .await;
}

#[tokio::test]
async fn the_short_forms_of_e2b_scripts_work() {
    World::run(async |world| {
        let id = world.session().await;

        let wrote = world
            .post("/api/e2b/files", json!({ "session_id": id, "path": "a.txt", "content": "hi" }))
            .await;
        let encoded = json!({ "session_id": id, "path": "b", "content_base64": "AP8=" });
        let bytes = world.post("/api/e2b/files", encoded).await;
        let read = world.get(&format!("/api/e2b/files?session_id={id}&path=b")).await;
        let listed = world.get(&format!("/api/e2b/files/{id}")).await;
        let code = "print(open('a.txt').read() * 2)";
        let ran = world.post("/api/e2b/execute", json!({ "session_id": id, "code": code })).await;
        let nothing = world.post("/api/e2b/files", json!({ "session_id": id, "path": "c" })).await;
        let absent =
            world.post("/api/e2b/execute", json!({ "session_id": "absent", "code": code })).await;

        assert_eq!((wrote.status, bytes.status), (204, 204));
        assert_eq!(&read.body[..], [0, 255]);
        let names: Vec<_> = listed.json()["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["name"].as_str().unwrap().to_owned())
            .collect();
        assert!(names.contains(&"a.txt".to_owned()), "{names:?}");
        assert_eq!(ran.json()["stdout"], "hihi\n", "{ran:?}");
        assert_eq!((nothing.status, absent.status), (400, 404));
    })
    .await;
}
