//! A session from its making to its end.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_session_is_made_shown_and_ended_once() {
    World::run(async |world| {
        let made = world
            .post(
                "/api/sessions",
                json!({ "environment": "python", "provider": "local_shell", "trusted": true,
                        "metadata": { "who": "me" }, "timeout": "10m" }),
            )
            .await;
        assert_eq!(made.status, 201, "{made:?}");
        let session = made.json();
        let url = session["url"].as_str().unwrap();
        assert_eq!(made.headers["location"], url);
        assert_eq!(session["engine"], "local");
        assert_eq!(session["provider"], "local");
        assert_eq!(session["environment"], "python");
        assert_eq!(session["state"], "ready");
        assert_eq!(session["metadata"], json!({ "who": "me" }));
        for field in ["session_id", "sandbox_id", "expires_at", "created_at"] {
            assert!(session[field].is_string(), "{field}");
        }

        let shown = world.get(url).await;
        let other = world.delete(&format!("{url}?sandbox_id=another")).await;
        let sandbox = session["sandbox_id"].as_str().unwrap();
        let first = world.delete(&format!("{url}?sandbox_id={sandbox}")).await;
        let second = world.delete(url).await;

        assert_eq!(
            (shown.status, shown.json()["session_id"].clone()),
            (200, session["session_id"].clone())
        );
        assert_eq!((other.status, other.code().as_str()), (409, "conflict"));
        assert_eq!((first.status, first.text()), (204, ""));
        assert_eq!((second.status, second.code().as_str()), (404, "not_found"));
    })
    .await;
}

#[tokio::test]
async fn sessions_are_listed_in_pages_and_by_what_they_are() {
    World::run(async |world| {
        for who in ["a", "b", "b"] {
            let body = json!({ "trusted": true, "metadata": { "who": who } });
            let made = world.post("/api/sessions", body).await;
            assert_eq!(made.status, 201, "{made:?}");
        }
        let count = async |query: &str| {
            let reply = world.get(&format!("/api/sessions{query}")).await;
            assert_eq!(reply.status, 200, "{query}: {reply:?}");
            reply.json()["sessions"].as_array().unwrap().len()
        };

        assert_eq!(count("").await, 3);
        assert_eq!(count("?metadata.who=b").await, 2);
        assert_eq!(count("?metadata.who=b&metadata.what=c").await, 0);
        assert_eq!(count("?state=ready&environment=base&engine=local").await, 3);
        assert_eq!(count("?state=gone").await, 0);
        assert_eq!(count("?state=all").await, 3);
        let page = world.get("/api/sessions?limit=2").await.json();
        assert_eq!(page["sessions"].as_array().unwrap().len(), 2);
        let next = page["next"].as_str().unwrap();
        let rest = world.get(&format!("/api/sessions?limit=2&after={next}")).await.json();
        assert_eq!(rest["sessions"].as_array().unwrap().len(), 1);
        assert!(rest.get("next").is_none());
    })
    .await;
}

#[tokio::test]
async fn a_deadline_is_moved() {
    World::run(async |world| {
        let id = world.session().await;
        let before = world.get(&format!("/api/sessions/{id}")).await.json();

        let target = format!("/api/sessions/{id}/timeout");
        let moved = world.post(&target, json!({ "timeout": "5h" })).await;
        let wrong = world.post(&target, json!({})).await;

        assert_eq!(moved.status, 200, "{moved:?}");
        assert!(moved.json()["expires_at"].as_str() > before["expires_at"].as_str());
        assert_eq!(wrong.status, 400);
        assert!(wrong.text().contains("`timeout`"), "{wrong:?}");
    })
    .await;
}

#[tokio::test]
async fn a_session_tells_what_it_uses() {
    World::run(async |world| {
        let id = world.session().await;

        let reply = world.get(&format!("/api/sessions/{id}/metrics")).await;

        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(reply.json().as_object().unwrap().contains_key("cpu_time"));
    })
    .await;
}
