//! Images that are given with a task.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use lathe_model::ImageStore;
use lathe_protocol::{Attachment, Digest};
use lathe_tools::{LARGEST_IMAGE, image_type};

use crate::{Archive, HostError};

/// An image that was read and is not stored yet.
pub struct TaskImage {
    pub(crate) attachment: Attachment,
    bytes: Vec<u8>,
}

/// Tells whether a file is an image by its first bytes.
pub fn is_image(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut head));
    read.is_ok() && image_type(&head).is_some()
}

/// Reads images for a task. The error names the file that is not an image, and the reason.
pub fn read_images(paths: &[PathBuf]) -> Result<Vec<TaskImage>, String> {
    let read = |path: &PathBuf| {
        let shown = path.display();
        let size = std::fs::metadata(path).map_err(|error| format!("{shown} cannot be read: {error}"))?.len();
        if size > LARGEST_IMAGE {
            return Err(format!("{shown} has {size} bytes; an image may have {LARGEST_IMAGE} at most"));
        }
        let bytes = std::fs::read(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
        let mime = image_type(&bytes)
            .ok_or_else(|| format!("{shown} is not a PNG, JPEG, GIF or WebP image by its content"))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let attachment = Attachment { mime: mime.to_owned(), blob: Digest::of(&bytes), name };
        Ok(TaskImage { attachment, bytes })
    };
    paths.iter().map(read).collect()
}

impl Archive {
    /// Stores the images of a task where the session finds them.
    pub fn store_images(&self, images: Vec<TaskImage>) -> Result<Vec<Attachment>, HostError> {
        if images.is_empty() {
            return Ok(Vec::new());
        }
        let blobs = self.home().blobs()?;
        let keep = |TaskImage { attachment, bytes }| match blobs.put(&bytes) {
            Ok(blob) => Ok(Attachment { blob, ..attachment }),
            Err(error) => Err(HostError::of_blob(&error, |reason| self.home().unusable(reason))),
        };
        images.into_iter().map(keep).collect()
    }
}

/// Images that are only shown and not stored.
pub(crate) struct ReadImages(HashMap<Digest, Vec<u8>>);

impl ReadImages {
    pub(crate) fn new(images: &[TaskImage]) -> Self {
        Self(images.iter().map(|image| (image.attachment.blob.clone(), image.bytes.clone())).collect())
    }
}

impl ImageStore for ReadImages {
    fn read(&self, blob: &Digest) -> Result<Vec<u8>, String> {
        self.0.get(blob).cloned().ok_or_else(|| "it was not given".to_owned())
    }
}
