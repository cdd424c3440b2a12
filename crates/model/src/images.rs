//! Images in messages: the selection for a wire, and their form.
//!
//! A message names its images; the bytes are read once, when the message is encoded for the wire, and stay in the
//! rope from then on. An image that a server would refuse must not get there: it would be sent again with every
//! request, and every request would be refused. So the limits of servers are a table here, and an image that is not
//! sent is mentioned in the text it belongs to, with the reason.

use lathe_protocol::{Digest, Image, Message};

use crate::form::{Form, Wire};

/// The estimated number of tokens of one image if the server does not count them: about the most that a provider
/// counts.
pub const IMAGE_TOKENS: usize = 1600;

/// The number of bytes of text per token, for estimated usage.
const TOKEN_BYTES: usize = 4;

/// A source of the bytes of images.
pub trait ImageStore: Send + Sync {
    /// The bytes of an image, or the reason why it cannot be read.
    fn read(&self, blob: &Digest) -> Result<Vec<u8>, String>;
}

/// A store without images.
pub struct NoImages;

impl ImageStore for NoImages {
    fn read(&self, _: &Digest) -> Result<Vec<u8>, String> {
        Err("there is no store of images here".to_owned())
    }
}

/// The limits of a server on images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    pub types: &'static [&'static str],
    /// The maximum size of one image in bytes.
    pub bytes: usize,
    /// The maximum number of images in one request.
    pub count: usize,
    /// The maximum size of all images in one request, in bytes.
    pub total: usize,
}

const USUAL: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];
const STILL: &[&str] = &["image/png", "image/jpeg", "image/webp"];

impl ImageLimits {
    /// The limits of a wire. Providers count base64, which is a third longer than the bytes, and a request has other
    /// parts too.
    pub fn of(wire: Wire) -> Self {
        match wire {
            // 5 MiB of base64 for one, 32 MB for a request; with more than 20 images each must be small.
            Wire::Messages => Self { types: USUAL, bytes: 15 << 18, count: 20, total: 20 << 20 },
            Wire::Chat | Wire::Responses => {
                Self { types: USUAL, bytes: 20 << 20, count: 50, total: 32 << 20 }
            }
            // 20 MB for a request with everything in it.
            Wire::Gemini => Self { types: STILL, bytes: 14 << 20, count: 50, total: 14 << 20 },
            Wire::Ollama => Self { types: STILL, bytes: 20 << 20, count: 20, total: 32 << 20 },
        }
    }
}

/// Models that are known to accept text only, by a part of their names.
const TEXT_ONLY: [&str; 10] = [
    "deepseek-chat",
    "deepseek-reasoner",
    "deepseek-coder",
    "gpt-3.5",
    "o1-mini",
    "o3-mini",
    "codestral",
    "qwen2.5-coder",
    "qwen3-coder",
    "kimi-k2",
];

/// Tells whether a model is known to accept no images.
pub fn takes_text_only(model: &str) -> bool {
    TEXT_ONLY.iter().any(|known| model.contains(known))
}

/// The number of images in a body, and their share of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pictures {
    count: usize,
    /// Bytes of the images themselves.
    bytes: usize,
    /// Bytes of their base64.
    encoded: usize,
}

impl Pictures {
    pub fn count(&self) -> usize {
        self.count
    }

    /// The length of a body if each image were text with its estimated number of tokens.
    pub(crate) fn bytes_as_text(&self, whole: usize) -> usize {
        whole.saturating_sub(self.encoded) + self.count * IMAGE_TOKENS * TOKEN_BYTES
    }
}

/// An image in the form that wires use.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
    name: String,
    /// The call to whose result it belongs.
    call: Option<String>,
}

impl Picture {
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }

    /// A caption for an image that is sent separately from its result.
    pub fn caption(&self) -> String {
        match &self.call {
            Some(call) => format!("[The image {} belongs to the result of call {call}.]", self.name),
            None => format!("[The image {}.]", self.name),
        }
    }
}

/// A message prepared for a wire: its pictures, and in its text a line for each image that is not shown.
pub(crate) struct PreparedMessage {
    pub message: Message,
    pub pictures: Vec<Picture>,
}

/// None for a message without images.
pub(crate) fn prepare(
    form: &Form,
    message: &Message,
    store: &dyn ImageStore,
    sent: &mut Pictures,
) -> Option<PreparedMessage> {
    let (images, call) = match message {
        Message::User(user) => (&user.images, None),
        Message::Tool(tool) => (&tool.images, Some(format!("{} ({})", tool.call, tool.name))),
        Message::Assistant(_) => return None,
    };
    if images.is_empty() {
        return None;
    }
    let mut pictures = Vec::new();
    let mut notes = String::new();
    for image in images {
        match bytes_of(form, image, store, sent) {
            Ok(bytes) => {
                let data = base64(&bytes);
                sent.count += 1;
                sent.bytes += bytes.len();
                sent.encoded += data.len();
                let (media_type, name) = (image.media_type.clone(), image.name.clone());
                pictures.push(Picture { media_type, data, name, call: call.clone() });
            }
            Err(reason) => {
                notes.push_str(&format!("\n[The image {} is not shown to you: {reason}.]", image.name))
            }
        }
    }
    let mut message = message.clone();
    match &mut message {
        Message::User(user) => user.text.push_str(&notes),
        Message::Tool(tool) => tool.text.push_str(&notes),
        Message::Assistant(_) => {}
    }
    Some(PreparedMessage { message, pictures })
}

fn bytes_of(form: &Form, image: &Image, store: &dyn ImageStore, sent: &Pictures) -> Result<Vec<u8>, String> {
    if form.params.images == Some(false) {
        return Err("this model takes no images (model.supports_images)".to_owned());
    }
    let limits = ImageLimits::of(form.wire);
    if !limits.types.contains(&image.media_type.as_str()) {
        let types: Vec<&str> = limits.types.iter().map(|known| known.trim_start_matches("image/")).collect();
        return Err(format!(
            "its type is {}, and this model's server takes {}",
            image.media_type,
            types.join(", ")
        ));
    }
    if sent.count >= limits.count {
        return Err(format!(
            "the conversation has {} images already, as many as this model's server takes",
            sent.count
        ));
    }
    let bytes = store.read(&image.blob).map_err(|reason| format!("it could not be read: {reason}"))?;
    if bytes.len() > limits.bytes {
        return Err(format!(
            "it has {} bytes, and this model's server takes {} at most",
            bytes.len(),
            limits.bytes
        ));
    }
    if sent.bytes + bytes.len() > limits.total {
        return Err(format!(
            "with it the images of the conversation would have more than the {} bytes this model's server takes",
            limits.total
        ));
    }
    Ok(bytes)
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let three = [0, 1, 2].map(|at| chunk.get(at).copied().unwrap_or(0));
        let joined = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
        for place in 0..4 {
            let index = (joined >> (18 - 6 * place) & 63) as usize;
            out.push(if place <= chunk.len() { char::from(LETTERS[index]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Params;
    use lathe_protocol::UserMessage;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (text, wanted) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(base64(text.as_bytes()), wanted);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    /// A store whose blobs are as long as a number.
    struct Of(usize);

    impl ImageStore for Of {
        fn read(&self, _: &Digest) -> Result<Vec<u8>, String> {
            Ok(vec![7; self.0])
        }
    }

    fn describe(
        form: &Form,
        media_type: &str,
        store: &dyn ImageStore,
        sent: &mut Pictures,
    ) -> (usize, String) {
        let image = Image { media_type: media_type.into(), blob: Digest::of(b"x"), name: "a.png".into() };
        let message = Message::User(UserMessage { text: "look".into(), images: vec![image] });
        let shown = prepare(form, &message, store, sent).unwrap();
        let Message::User(user) = shown.message else { panic!() };
        (shown.pictures.len(), user.text)
    }

    #[test]
    fn what_a_server_would_refuse_is_told_and_not_sent() {
        for wire in Wire::ALL {
            let form = Form::from(wire);
            let limits = ImageLimits::of(wire);
            let fresh = Pictures::default;
            assert_eq!(describe(&form, "image/png", &Of(limits.bytes), &mut fresh()), (1, "look".to_owned()));
            let (count, text) = describe(&form, "image/png", &Of(limits.bytes + 1), &mut fresh());
            assert_eq!(count, 0);
            assert!(text.contains("a.png is not shown to you: it has"), "{text}");
            let (count, text) = describe(&form, "image/tiff", &Of(1), &mut fresh());
            assert!(count == 0 && text.contains("its type is image/tiff"), "{text}");
            let (count, text) = describe(&form, "image/png", &NoImages, &mut fresh());
            assert!(count == 0 && text.contains("could not be read"), "{text}");
            let mut sent = Pictures { count: limits.count, ..fresh() };
            let (count, text) = describe(&form, "image/png", &Of(1), &mut sent);
            assert!(count == 0 && text.contains("images already"), "{text}");
            let mut sent = Pictures { bytes: limits.total, ..fresh() };
            let (count, text) = describe(&form, "image/png", &Of(1), &mut sent);
            assert!(count == 0 && text.contains("would have more than"), "{text}");
            let blind = Form::new(wire, Params { images: Some(false), ..Params::default() });
            let (count, text) = describe(&blind, "image/png", &Of(1), &mut fresh());
            assert!(count == 0 && text.contains("takes no images"), "{text}");
        }
    }

    #[test]
    fn an_image_is_counted_as_a_number_of_tokens_not_by_its_bytes() {
        let mut sent = Pictures::default();
        describe(&Form::from(Wire::Chat), "image/png", &Of(3_000_000), &mut sent);
        assert_eq!(sent.bytes_as_text(4_000_100), 100 + 1600 * 4);
    }
}
