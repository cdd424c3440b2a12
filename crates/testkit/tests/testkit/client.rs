//! A client that shows every byte: HTTP by hand on one connection.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;

use lathe_testkit::FakeModel;
use serde_json::{Value, json};

pub struct Client {
    stream: BufReader<TcpStream>,
    key: Option<String>,
}

/// An HTTP answer; the chunks of a chunked one are kept apart.
#[derive(Debug)]
pub struct Response {
    pub code: u16,
    pub headers: String,
    pub chunks: Vec<Vec<u8>>,
    /// The reason for which reading stopped early, if it did.
    pub broke: Option<ErrorKind>,
}

impl Response {
    pub fn text(&self) -> String {
        String::from_utf8(self.chunks.concat()).unwrap()
    }

    /// The data of the events, for any line ends.
    pub fn datas(&self) -> Vec<String> {
        let text = self.text().replace("\r\n", "\n").replace('\r', "\n");
        text.split("\n\n").filter_map(|event| event.strip_prefix("data: ").map(str::to_owned)).collect()
    }

    /// The text of the answer, put together.
    pub fn content(&self) -> String {
        self.joined("/choices/0/delta/content")
    }

    pub fn arguments(&self) -> String {
        self.joined("/choices/0/delta/tool_calls/0/function/arguments")
    }

    pub fn is_whole(&self) -> bool {
        self.broke.is_none() && self.datas().last().is_some_and(|data| data == "[DONE]")
    }

    fn joined(&self, pointer: &str) -> String {
        self.datas()
            .iter()
            .filter_map(|data| serde_json::from_str::<Value>(data).ok())
            .filter_map(|data| data.pointer(pointer)?.as_str().map(str::to_owned))
            .collect()
    }
}

/// A conversation with `answers` answered calls in it.
pub fn messages(answers: usize) -> Vec<Value> {
    let mut messages =
        vec![json!({"role": "system", "content": "s"}), json!({"role": "user", "content": "u"})];
    for number in 0..answers {
        let id = format!("c{number}");
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "ok"}));
    }
    messages
}

impl Client {
    pub fn to(model: &FakeModel) -> Self {
        let url = model.base_url();
        let address = url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
        Self { stream: BufReader::new(TcpStream::connect(address).unwrap()), key: None }
    }

    pub fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Asks for the answer after `answers` others.
    pub fn ask(&mut self, answers: usize) -> Response {
        self.ask_with(messages(answers))
    }

    pub fn ask_with(&mut self, messages: Vec<Value>) -> Response {
        let body = json!({"model": "fake", "stream": true, "stream_options": {"include_usage": true},
            "messages": messages})
        .to_string();
        let key = self.key.as_ref().map_or(String::new(), |key| format!("Authorization: Bearer {key}\r\n"));
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{key}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        self.read_response()
    }

    fn line(&mut self) -> Result<String, ErrorKind> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => Err(ErrorKind::UnexpectedEof),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(error.kind()),
        }
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, ErrorKind> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).map_err(|error| error.kind())?;
        Ok(bytes)
    }

    fn read_response(&mut self) -> Response {
        let mut response = Response { code: 0, headers: String::new(), chunks: Vec::new(), broke: None };
        if let Err(kind) = self.read_into(&mut response) {
            response.broke = Some(kind);
        }
        response
    }

    fn read_into(&mut self, response: &mut Response) -> Result<(), ErrorKind> {
        let first = self.line()?;
        response.code = first.split(' ').nth(1).unwrap().parse().unwrap();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            response.headers.push_str(&line);
            response.headers.push('\n');
        }
        let length = response.headers.lines().find_map(|line| line.strip_prefix("content-length: "));
        if let Some(length) = length {
            let length = length.parse().unwrap();
            response.chunks.push(self.bytes(length)?);
            return Ok(());
        }
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).unwrap();
            let chunk = self.bytes(size)?;
            self.line()?;
            if size == 0 {
                return Ok(());
            }
            response.chunks.push(chunk);
        }
    }
}
