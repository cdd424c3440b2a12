//! The table of routes: the router, the roles and the OpenAPI document come from the same rows, so they cannot disagree.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::handler::Handler;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::access::{Identity, Role, Share};
use crate::app::App;
use crate::error::ApiError;

/// Bytes of a body of JSON.
pub(crate) const BODY_MAX: usize = 4 << 20;

/// The time for which a body of JSON may be received.
const BODY_TIME: Duration = Duration::from_secs(20);

/// One row of the table.
pub(crate) struct Endpoint {
    method: Method,
    path: &'static str,
    /// The role it needs; none for a public route.
    role: Option<Role>,
    about: &'static str,
    query: Option<Make>,
    body: Option<Make>,
    answer: Option<Make>,
    /// Content other than JSON that is taken or given.
    takes: Option<&'static str>,
    gives: Option<&'static str>,
    /// True if it takes processes or the whole capacity of a disk: a token may run only a few of these at once.
    is_costly: bool,
}

type Make = fn(&mut SchemaGenerator) -> Value;

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

impl Endpoint {
    fn new(method: Method, path: &'static str, about: &'static str) -> Self {
        Self {
            method,
            path,
            role: Some(Role::Viewer),
            about,
            query: None,
            body: None,
            answer: None,
            takes: None,
            gives: None,
            is_costly: false,
        }
    }

    pub fn get(path: &'static str, about: &'static str) -> Self {
        Self::new(Method::GET, path, about)
    }

    /// A route that changes something, so it needs an operator.
    pub fn post(path: &'static str, about: &'static str) -> Self {
        Self::new(Method::POST, path, about).role(Role::Operator)
    }

    pub fn put(path: &'static str, about: &'static str) -> Self {
        Self::new(Method::PUT, path, about).role(Role::Operator)
    }

    pub fn delete(path: &'static str, about: &'static str) -> Self {
        Self::new(Method::DELETE, path, about).role(Role::Operator)
    }

    pub fn role(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }

    pub fn public(self) -> Self {
        Self { role: None, ..self }
    }

    pub fn costly(self) -> Self {
        Self { is_costly: true, ..self }
    }

    pub fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(schema::<T>), ..self }
    }

    pub fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some(schema::<T>), ..self }
    }

    pub fn response<T: JsonSchema>(self) -> Self {
        Self { answer: Some(schema::<T>), ..self }
    }

    pub fn takes(self, mime: &'static str) -> Self {
        Self { takes: Some(mime), ..self }
    }

    pub fn returns(self, mime: &'static str) -> Self {
        Self { gives: Some(mime), ..self }
    }
}

/// The table while it is filled.
pub(crate) struct Api {
    router: Router<App>,
    endpoints: Vec<Endpoint>,
}

impl Api {
    pub fn new() -> Self {
        Self { router: Router::new(), endpoints: Vec::new() }
    }

    pub fn add<H, T>(&mut self, endpoint: Endpoint, handler: H) -> &mut Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        let (needed, is_costly) = (endpoint.role, endpoint.is_costly);
        let check =
            from_fn(move |request: Request, next: Next| check_access(needed, is_costly, request, next));
        let filter = MethodFilter::try_from(endpoint.method.clone()).unwrap_or(MethodFilter::GET);
        let router = std::mem::take(&mut self.router);
        self.router = router.route(endpoint.path, on(filter, handler).layer(check));
        self.endpoints.push(endpoint);
        self
    }

    /// The router, and the document that describes it.
    pub fn finish(self) -> (Router<App>, RouteTable) {
        let document = document(&self.endpoints);
        let rows = self.endpoints.iter().map(|row| (row.method.clone(), row.path, row.role)).collect();
        (self.router, RouteTable { rows, document })
    }
}

/// The table's contents, for the description and for the access check.
pub(crate) struct RouteTable {
    rows: Vec<(Method, &'static str, Option<Role>)>,
    pub document: Value,
}

impl RouteTable {
    /// Tells whether a route is public.
    pub fn is_public(&self, method: &Method, path: &str) -> bool {
        let asked = if *method == Method::HEAD { &Method::GET } else { method };
        self.rows
            .iter()
            .any(|(known, pattern, role)| role.is_none() && known == asked && matches(pattern, path))
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once("{*") {
        Some((before, _)) => path.starts_with(before),
        None => {
            let (mut pattern, mut path) = (pattern.split('/'), path.split('/'));
            loop {
                match (pattern.next(), path.next()) {
                    (None, None) => return true,
                    (Some(a), Some(b)) if a == b || (a.starts_with('{') && !b.is_empty()) => {}
                    _ => return false,
                }
            }
        }
    }
}

async fn check_access(needed: Option<Role>, is_costly: bool, request: Request, next: Next) -> Response {
    let Some(needed) = needed else { return next.run(request).await };
    match request.extensions().get::<Identity>() {
        None => ApiError::unauthorized().into_response(),
        Some(identity) if identity.role < needed => ApiError::forbidden(format!(
            "This needs a token with the role {needed}; {} has the role {}.",
            identity.name, identity.role
        ))
        .into_response(),
        Some(_) if is_costly => {
            let Some(share) = request.extensions().get::<Share>().cloned() else {
                return ApiError::unauthorized().into_response();
            };
            let slot = share.costly().await;
            lathe_workbench::with_slot(slot, next.run(request)).await
        }
        Some(_) => next.run(request).await,
    }
}

fn document(endpoints: &[Endpoint]) -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let error = schema::<ApiError>(&mut generator);
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in endpoints {
        let operation = operation(endpoint, &mut generator, &error);
        // OpenAPI has no rest parameters: it becomes an ordinary one there.
        let path = endpoint.path.replace("{*", "{");
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[endpoint.method.as_str().to_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lathe",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions of a software-engineering agent. Runs are watched and steered over WebSocket: see docs/server.md.",
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator, error: &Value) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    for name in endpoint.path.split('{').skip(1).filter_map(|rest| rest.split_once('}')) {
        let name = name.0.trim_start_matches('*');
        parameters
            .push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    if let Some(query) = endpoint.query {
        parameters.extend(query_parameters(&query(generator), generator));
    }
    let mut operation = json!({
        "summary": endpoint.about,
        "operationId": operation_id(endpoint),
        "parameters": parameters,
        "responses": {},
    });
    if let Some(body) = endpoint.body {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": body(generator) } } });
    } else if let Some(takes) = endpoint.takes {
        let schema = json!({ "type": "string", "format": "binary" });
        operation["requestBody"] = json!({ "required": true, "content": { takes: { "schema": schema } } });
    }
    let content = match (endpoint.answer, endpoint.gives) {
        (Some(answer), _) => json!({ "application/json": { "schema": answer(generator) } }),
        (None, Some(gives)) => json!({ gives: { "schema": { "type": "string" } } }),
        (None, None) => json!({ "application/json": { "schema": {} } }),
    };
    operation["responses"]["200"] = json!({ "description": "Done.", "content": content });
    let refused =
        json!({ "description": "Refused.", "content": { "application/json": { "schema": error } } });
    for status in ["400", "401", "403", "404", "408", "409", "413", "415", "422", "429", "500", "503"] {
        operation["responses"][status] = refused.clone();
    }
    if endpoint.role.is_some() {
        operation["security"] = json!([{ "token": [] }]);
    }
    operation
}

fn operation_id(endpoint: &Endpoint) -> String {
    let words = endpoint.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    format!("{}_{}", endpoint.method.as_str().to_lowercase(), words.join("_"))
}

/// The members of an object as parameters of a query.
fn query_parameters(schema: &Value, generator: &SchemaGenerator) -> Vec<Value> {
    let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    let object = name.and_then(|name| generator.definitions().get(name)).unwrap_or(schema);
    let required = object["required"].as_array().cloned().unwrap_or_default();
    let members = object["properties"].as_object().cloned().unwrap_or_default();
    members
        .into_iter()
        .map(|(name, schema)| {
            let needed = required.iter().any(|known| *known == name);
            json!({ "name": name, "in": "query", "required": needed, "schema": schema })
        })
        .collect()
}

/// A body of JSON, read with a limit; the refusal describes what is wrong with it.
pub(crate) struct Input<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Input<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let is_json =
            request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(
                |kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json"),
            );
        if !is_json {
            return Err(ApiError::bad("The body must be JSON: send `Content-Type: application/json`."));
        }
        let identity = request.extensions().get::<Identity>().cloned();
        let read = tokio::time::timeout(BODY_TIME, Bytes::from_request(request, app)).await;
        let bytes = read
            .map_err(|_| {
                ApiError::too_slow(format!("A body of JSON may take {} seconds.", BODY_TIME.as_secs()))
            })?
            .map_err(|_| ApiError::too_large(format!("A body of JSON may have {BODY_MAX} bytes.")))?;
        // The token may have been removed while the body came.
        identity.iter().try_for_each(|identity| app.access.check(identity))?;
        parse(&bytes).map(Input)
    }
}

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value: T = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = error.path().to_string();
        let place = if place == "." { String::new() } else { format!("`{place}`: ") };
        ApiError::unprocessable(format!("{place}{}", error.into_inner()))
    })?;
    reader.end().map_err(|_| ApiError::unprocessable("There is more after the end of the JSON."))?;
    Ok(value)
}

/// The query of an address.
pub(crate) struct QueryOf<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for QueryOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(asked)| QueryOf(asked))
            .map_err(|error| ApiError::unprocessable(error.body_text()))
    }
}

/// A part of the path.
pub(crate) struct PathOf<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for PathOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        axum::extract::Path::from_request_parts(parts, app)
            .await
            .map(|axum::extract::Path(named)| PathOf(named))
            .map_err(|error| ApiError::bad(error.body_text()))
    }
}

/// JSON for a client: values that look like secrets are masked, and nothing in it acts on a terminal that shows it.
#[derive(Debug, Clone)]
pub(crate) struct Json<T>(pub T);

impl<T: serde::Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        json_response(lathe_views::wire_json(&self.0))
    }
}

/// JSON of content that clients edit and send back, unchanged: files, documents, prompts, diffs of the folder.
#[derive(Debug, Clone)]
pub(crate) struct Exact<T>(pub T);

impl<T: serde::Serialize> IntoResponse for Exact<T> {
    fn into_response(self) -> Response {
        json_response(lathe_protocol::json_text(&self.0))
    }
}

fn json_response(text: String) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}

/// The response of a handler: JSON, or a refusal.
pub(crate) type ApiResult<T> = Result<Json<T>, ApiError>;

/// The response of a handler of content: the content as it is, or a refusal.
pub(crate) type ExactResult<T> = Result<Exact<T>, ApiError>;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Extension;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::{Semaphore, mpsc};

    use super::*;
    use crate::access::{Shares, TokenKey};

    #[test]
    fn every_search_every_tree_and_every_git_run_is_counted_as_costly() {
        let mut api = Api::new();
        crate::routes::add(&mut api);
        let costly = |path: &str| {
            let rows: Vec<bool> =
                api.endpoints.iter().filter(|row| row.path == path).map(|row| row.is_costly).collect();
            assert!(!rows.is_empty(), "{path} is not there");
            rows.into_iter().all(|costly| costly)
        };
        let git: Vec<&str> =
            api.endpoints.iter().map(|row| row.path).filter(|path| path.contains("git")).collect();
        assert!(git.len() >= 8, "{git:?}");
        let trees = ["/api/files", "/files/list", "/agent/session/{id}/files", "/api/files/removed"];
        for path in git.into_iter().chain(["/api/files/search"]).chain(trees) {
            assert!(costly(path), "{path}");
        }
        assert!(!costly("/health") && !costly("/api/sessions"));
    }

    /// A server with one costly route, whose requests report their token when they begin and end when the test
    /// permits it.
    async fn busy_server() -> (std::net::SocketAddr, mpsc::Receiver<String>, [Arc<Semaphore>; 2]) {
        let (begun, begins) = mpsc::channel(64);
        let shares = Arc::new(Shares::default());
        let ends = [0, 0].map(|permits| Arc::new(Semaphore::new(permits)));
        let gates = ends.clone();
        let handler = move |Extension(identity): Extension<Identity>| {
            let gate = if &*identity.name == "greedy" { &gates[0] } else { &gates[1] };
            let (begun, gate) = (begun.clone(), Arc::clone(gate));
            async move {
                begun.send(identity.name.to_string()).await.unwrap();
                gate.acquire().await.unwrap().forget();
                "done"
            }
        };
        let check =
            from_fn(|request: Request, next: Next| check_access(Some(Role::Viewer), true, request, next));
        let identify = from_fn(move |mut request: Request, next: Next| {
            let name = request.uri().query().unwrap_or_default().to_owned();
            let key = TokenKey::of(&name);
            request.extensions_mut().insert(Identity { name: name.into(), role: Role::Viewer, key });
            request.extensions_mut().insert(shares.of(key));
            next.run(request)
        });
        let router = Router::new().route("/", get(handler).layer(check)).layer(identify);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (address, begins, ends)
    }

    /// An attack on the server: a client that disconnected got its slot back while its search still ran.
    #[tokio::test]
    async fn work_on_another_thread_keeps_its_slot_when_its_client_is_gone() {
        let share = Shares::default().of(TokenKey::of("greedy"));
        let (begun, mut begins) = mpsc::channel(64);
        let (dropped, mut goes) = mpsc::channel::<()>(64);
        let end = Arc::new(Semaphore::new(0));
        let gate = Arc::clone(&end);
        let handler = move || {
            let (begun, gate) = (begun.clone(), Arc::clone(&gate));
            let (dropped, runtime) = (ReportOnDrop(dropped.clone()), tokio::runtime::Handle::current());
            let work = lathe_workbench::keeping_slot(move || {
                begun.blocking_send(()).unwrap();
                runtime.block_on(gate.acquire()).unwrap().forget();
            });
            async move {
                let _gone = dropped;
                tokio::task::spawn_blocking(work).await.unwrap();
            }
        };
        let check =
            from_fn(|request: Request, next: Next| check_access(Some(Role::Viewer), true, request, next));
        let router = Router::new().route("/", get(handler).layer(check));
        let identity = Identity { name: "greedy".into(), role: Role::Viewer, key: TokenKey::of("greedy") };
        let router = router.layer(Extension(identity)).layer(Extension(share));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let ask = async || {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
            stream
        };
        for _ in 0..4 {
            let client = ask().await;
            begins.recv().await.unwrap();
            drop(client);
            goes.recv().await.unwrap();
        }
        let mut fifth = ask().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(begins.is_empty(), "a fifth search began while four were at work");
        end.add_permits(5);
        begins.recv().await.unwrap();
        let mut answer = String::new();
        fifth.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// Reports when the future of a request is dropped.
    struct ReportOnDrop(mpsc::Sender<()>);

    impl Drop for ReportOnDrop {
        fn drop(&mut self) {
            self.0.try_send(()).unwrap();
        }
    }

    #[tokio::test]
    async fn a_token_has_four_costly_requests_at_once_and_the_others_wait_for_these() {
        let (address, mut begins, [greedy, others]) = busy_server().await;
        let ask = |name: &'static str| {
            tokio::spawn(async move {
                let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
                let request = format!("GET /?{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            })
        };
        let many: Vec<_> = (0..12).map(|_| ask("greedy")).collect();
        for _ in 0..4 {
            assert_eq!(begins.recv().await.unwrap(), "greedy");
        }
        // Another token is not kept waiting, and its request is the only one that begins.
        for _ in 0..4 {
            let other = ask("other");
            assert_eq!(begins.recv().await.unwrap(), "other");
            others.add_permits(1);
            other.await.unwrap();
        }
        // Each that ends lets one more begin.
        for _ in 0..8 {
            assert!(begins.is_empty());
            greedy.add_permits(1);
            assert_eq!(begins.recv().await.unwrap(), "greedy");
        }
        greedy.add_permits(100);
        for one in many {
            one.await.unwrap();
        }
    }
}
