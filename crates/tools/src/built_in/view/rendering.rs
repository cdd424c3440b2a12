//! Lathe's own words for viewed files, folders, documents and images.

use lathe_edit::number_lines;

use super::clip;
use crate::outcome::{DocumentData, DocumentKind, FileData, FolderData, ImageData};

/// Lines shown when no limit is given.
const LINES: usize = 2000;

pub(crate) fn file_words(file: &FileData, cap: usize) -> String {
    let lines = file.lines;
    if lines == 0 && !file.open {
        return format!("{} is empty.", file.path);
    }
    if file.first > lines && !file.open {
        return format!("{} ends with line {lines}.", file.path);
    }
    let to_the_end = file.first + file.text.matches('\n').count() >= file.pieces;
    let text = match file.text.strip_suffix('\n') {
        Some(text) if to_the_end && lines < file.pieces => text.strip_suffix('\r').unwrap_or(text),
        Some(_) | None => &file.text,
    };
    let most = if file.limited { usize::MAX } else { LINES };
    let shown = clip(first_lines(text, most), cap);
    let last = file.first + shown.matches('\n').count();
    let hidden = text.get(shown.len()..).unwrap_or_default();
    let mut notes = String::new();
    if !hidden.is_empty() && !hidden.starts_with('\n') {
        notes = format!(
            "\nLine {last} is too long to be shown whole; see more of it with bash (`sed -n {last}p`, `cut -c`)."
        );
    }
    if last < lines || file.open {
        let least = if file.open { "at least " } else { "" };
        notes.push_str(&format!(
            "\nLines {}-{last} of {least}{lines} shown; give offset {} for more.",
            file.first,
            last + 1
        ));
    }
    let shown = match shown.strip_suffix('\r') {
        Some(shown) if hidden.starts_with('\n') => shown,
        Some(_) | None => shown,
    };
    let encoding = file.encoding.map_or(String::new(), |name| format!(" encoding=\"{name}\""));
    format!("<file path=\"{}\"{encoding}>\n{}\n</file>{notes}", file.path, number_lines(shown, file.first))
}

fn first_lines(text: &str, most: usize) -> &str {
    match text.match_indices('\n').nth(most.saturating_sub(1)) {
        Some((at, _)) => text.get(..at).unwrap_or(text),
        None => text,
    }
}

pub(crate) fn folder_words(folder: &FolderData, cap: usize) -> String {
    let ignored = match folder.ignored {
        0 => String::new(),
        1 => "\n(1 entry is ignored by .gitignore or its like; it can be viewed by its own name)".to_owned(),
        count => {
            format!(
                "\n({count} entries are ignored by .gitignore or its like; each can be viewed by its own name)"
            )
        }
    };
    if folder.entries.is_empty() && folder.ignored == 0 {
        return format!("{} is an empty folder (hidden names are left out).", folder.path);
    }
    if folder.entries.is_empty() {
        return format!("{} shows nothing (hidden names are left out).{ignored}", folder.path);
    }
    let listed = folder.entries.join("\n");
    let shown = clip(&listed, cap);
    let rest = folder.entries.len().saturating_sub(1 + shown.matches('\n').count());
    let more = if rest > 0 {
        format!("\n{}", crate::files::hidden::not_shown_note(rest, "entry"))
    } else {
        String::new()
    };
    format!("<folder path=\"{}\">\n{shown}\n</folder>{more}{ignored}", folder.path)
}

/// The words for as many whole cells or pages as there is room for.
pub(crate) fn document_words(document: &DocumentData, cap: usize) -> String {
    let mut shown = String::new();
    let mut count = 0;
    for part in &document.parts {
        if count > 0 && shown.len() + part.len() > cap {
            break;
        }
        if count > 0 {
            shown.push_str("\n\n");
        }
        shown.push_str(clip(part, cap));
        count += 1;
    }
    let cut = document.parts.first().is_some_and(|part| count == 1 && part.len() > cap);
    let last = (document.first + count).saturating_sub(1);
    let (what, unit) = match document.kind {
        DocumentKind::Notebook => ("notebook", "Cells"),
        DocumentKind::Pdf => ("PDF", "Pages"),
    };
    let mut notes = String::new();
    if document.first > 1 || last < document.total || cut {
        let more = match document.kind {
            DocumentKind::Notebook => "give offset and limit to see the lines of the file instead".to_owned(),
            DocumentKind::Pdf if last < document.total => format!("give offset {} for more", last + 1),
            DocumentKind::Pdf => "use bash (`pdftotext`) for the rest".to_owned(),
        };
        let part = if cut { ", not whole" } else { "" };
        let first = document.first;
        notes = format!("\n{unit} {first}-{last} of {} shown{part}; {more}.", document.total);
    }
    if document.total == 0 {
        return format!("{} is a {what} without {}.", document.path, unit.to_lowercase());
    }
    format!("<document path=\"{}\" type=\"{what}\">\n{shown}\n</document>{notes}", document.path)
}

pub(crate) fn image_words(image: &ImageData) -> String {
    let size = match image.pixels {
        Some((width, height)) => format!("{width} x {height} pixels, "),
        None => String::new(),
    };
    let attached = if image.attached { "" } else { " It is larger than 20 MiB, so it is not shown to you." };
    format!("{} is a {} image: {size}{} bytes.{attached}", image.path, image.name, image.bytes)
}
