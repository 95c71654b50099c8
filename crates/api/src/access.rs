//! Who may use which route. There is no way to add a route without saying so.

use atoll_service::Identity;
use atoll_types::key::Scope;
use axum::{
    Router,
    extract::{FromRequestParts, Request, State},
    handler::Handler,
    http::{HeaderMap, Method, header::AUTHORIZATION, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{self, MethodFilter, MethodRouter},
};

use crate::{app::App, error::Error, peer::Peer};

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing at all.
    Anyone,
    /// A key, whatever it is for.
    AnyKey,
    /// A key with this scope, or with `admin`.
    Key(Scope),
}

/// Who is calling, once let in.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// The server's own user, over the private socket: may do everything.
    Operator { uid: u32 },
    /// A key's holder.
    Holder(Identity),
    /// Nobody in particular, on a route that asks for nothing.
    Anyone,
}

/// A row: one method of one path.
pub(crate) struct Route {
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests that walk the table need it"))]
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    handler: MethodRouter<App>,
}

/// The table of routes.
#[derive(Default)]
pub(crate) struct Routes(pub(crate) Vec<Route>);

impl Routes {
    pub(crate) fn get<H, T>(self, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.row(Method::GET, path, access, routing::get(handler))
    }

    pub(crate) fn post<H, T>(self, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.row(Method::POST, path, access, routing::post(handler))
    }

    pub(crate) fn put<H, T>(self, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.row(Method::PUT, path, access, routing::put(handler))
    }

    pub(crate) fn delete<H, T>(self, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.row(Method::DELETE, path, access, routing::delete(handler))
    }

    /// Every method that is about something; the table has it under `GET`.
    pub(crate) fn any<H, T>(self, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        let methods = MethodFilter::GET
            .or(MethodFilter::HEAD)
            .or(MethodFilter::POST)
            .or(MethodFilter::PUT)
            .or(MethodFilter::PATCH)
            .or(MethodFilter::DELETE)
            .or(MethodFilter::OPTIONS);
        self.row(Method::GET, path, access, routing::on(methods, handler))
    }

    fn row(
        mut self,
        method: Method,
        path: &'static str,
        access: Access,
        handler: MethodRouter<App>,
    ) -> Self {
        self.0.push(Route { method, path, access, handler });
        self
    }

    pub(crate) fn and(mut self, mut others: Self) -> Self {
        self.0.append(&mut others.0);
        self
    }

    /// The router of these routes, each behind its gate.
    pub(crate) fn into_router(self, app: &App) -> Router<App> {
        self.0.into_iter().fold(Router::new(), |router, Route { path, access, handler, .. }| {
            let gate = middleware::from_fn_with_state((app.clone(), access), admit);
            router.route(path, handler.route_layer(gate))
        })
    }
}

/// Lets a request through to its handler, or not, before any of its body is read.
pub(crate) async fn admit(
    State((app, access)): State<(App, Access)>,
    mut request: Request,
    next: Next,
) -> Response {
    match judge(&app, access, request.extensions().get(), request.headers()).await {
        Ok(caller) => {
            tracing::debug!(caller = caller.name(), "let in");
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

impl Caller {
    /// What the log calls them.
    fn name(&self) -> &str {
        match self {
            Self::Operator { .. } => "operator",
            Self::Holder(identity) => &identity.key_id,
            Self::Anyone => "anyone",
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        parts.extensions.get().cloned().ok_or_else(Error::internal)
    }
}

async fn judge(
    app: &App,
    access: Access,
    peer: Option<&Peer>,
    headers: &HeaderMap,
) -> Result<Caller, Error> {
    let wanted = match (access, peer) {
        (Access::Anyone, _) => return Ok(Caller::Anyone),
        (_, Some(Peer::Operator { uid })) => return Ok(Caller::Operator { uid: *uid }),
        (Access::AnyKey, _) => None,
        (Access::Key(scope), _) => Some(scope),
    };
    let key = key(headers).ok_or_else(Error::no_key)?;
    let identity = app.service.authenticate(key).await?.ok_or_else(Error::wrong_key)?;
    match wanted {
        Some(scope) if !may(&identity.scopes, scope) => Err(Error::missing_scope(scope)),
        _ => Ok(Caller::Holder(identity)),
    }
}

fn may(scopes: &[Scope], wanted: Scope) -> bool {
    scopes.iter().any(|scope| *scope == wanted || *scope == Scope::Admin)
}

/// The key of `Authorization: Bearer` or `X-API-Key`.
fn key(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    bearer
        .or_else(|| headers.get("x-api-key").and_then(|value| value.to_str().ok()))
        .filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_no_other_scope() {
        assert!(may(&[Scope::Read], Scope::Read));
        assert!(!may(&[Scope::Read], Scope::Run));
        assert!(!may(&[Scope::Read, Scope::Run], Scope::Admin));
        assert!(!may(&[], Scope::Read));
        assert!(may(&[Scope::Admin], Scope::Run));
    }

    #[test]
    fn a_key_comes_in_one_of_two_headers() {
        let found = |name: &'static str, value: &str| {
            let headers = HeaderMap::from_iter([(
                axum::http::HeaderName::from_static(name),
                value.parse().unwrap(),
            )]);
            key(&headers).map(str::to_owned)
        };

        assert_eq!(found("authorization", "Bearer k"), Some("k".into()));
        assert_eq!(found("authorization", "bearer k"), Some("k".into()));
        assert_eq!(found("x-api-key", "k"), Some("k".into()));
        assert_eq!(found("authorization", "Basic k"), None);
        assert_eq!(found("authorization", "Bearer "), None);
        assert_eq!(found("x-api-key", ""), None);
    }
}
