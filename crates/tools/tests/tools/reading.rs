//! Reading what is not a small text file: other encodings, huge files, long lines, notebooks, images, PDF, binaries.

use std::io::Write as _;

use lathe_protocol::{Attachment, Digest, ToolErrorKind};
use lopdf::content::{Content, Operation};
use lopdf::{Document, Object, Stream, dictionary};
use serde_json::{Value, json};

use crate::bench::{Bench, gemini, lathe, trae};

fn view(path: &str) -> Value {
    json!({ "path": path })
}

fn read_file(path: &str) -> Value {
    json!({ "file_path": path })
}

/// A file of numbered lines for 2 MiB, and then of that many bytes, which are nothing on the disk.
fn huge(bench: &Bench, name: &str, bytes: u64) {
    let mut file = std::fs::File::create(bench.root.join(name)).unwrap();
    let lines: String = (1..=200_000).map(|number| format!("line {number}\n")).collect();
    file.write_all(lines.as_bytes()).unwrap();
    file.set_len(bytes).unwrap();
}

fn memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0";

fn pdf(pages: usize) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let font = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier", "Encoding" => "WinAnsiEncoding",
    });
    let resources = document.add_object(dictionary! { "Font" => dictionary! { "F1" => font } });
    let kids: Vec<Object> = (1..=pages)
        .map(|number| {
            let operations = vec![
                Operation::new("BT", vec![]),
                Operation::new("Tf", vec!["F1".into(), 48.into()]),
                Operation::new("Td", vec![100.into(), 600.into()]),
                Operation::new("Tj", vec![Object::string_literal(format!("Words of page {number}"))]),
                Operation::new("ET", vec![]),
            ];
            let content = Content { operations }.encode().unwrap();
            let content = document.add_object(Stream::new(dictionary! {}, content));
            document
                .add_object(dictionary! { "Type" => "Page", "Parent" => tree, "Contents" => content })
                .into()
        })
        .collect();
    let count = i64::try_from(kids.len()).unwrap();
    let root = dictionary! {
        "Type" => "Pages", "Kids" => kids, "Count" => count, "Resources" => resources,
        "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
    };
    document.objects.insert(tree, root.into());
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    document.trailer.set("Root", catalog);
    document.compress();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn other_encodings_are_read_and_named() {
    let text = "grün\nzwei\n";
    let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let long: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    for (content, encoding) in [
        ([b"\xff\xfe".to_vec(), le.clone()].concat(), "UTF-16LE"),
        ([b"\xfe\xff".to_vec(), be].concat(), "UTF-16BE"),
        ([b"\xff\xfe\0\0".to_vec(), long].concat(), "UTF-32LE"),
        (le, "UTF-16LE"),
    ] {
        let mut bench = lathe();
        bench.put("a", &content);
        assert_eq!(
            bench.told("view", view("a")).await,
            format!("<file path=\"/W/a\" encoding=\"{encoding}\">\n     1\tgrün\n     2\tzwei\n</file>")
        );
        let mut bench = gemini();
        bench.put("a", &content);
        let text = bench.told("read_file", read_file("a")).await;
        assert_eq!(text, format!("grün\nzwei\n\n[The file is in {encoding}.]"));
        let mut bench = trae();
        let path = bench.put("a", &content);
        let text =
            bench.told("str_replace_based_edit_tool", json!({ "command": "view", "path": path })).await;
        assert!(text.ends_with(&format!("\nNote: the file is in {encoding}.\n")), "{text}");
    }
}

#[tokio::test]
async fn a_window_of_a_huge_file_is_shown_at_once_with_flat_memory() {
    let mut bench = lathe();
    huge(&bench, "huge", 1 << 30);
    let before = memory_kb();
    let text = bench.told("view", json!({ "path": "huge", "offset": 150_000, "limit": 2 })).await;
    assert!(text.starts_with("<file path=\"/W/huge\">\n150000\tline 150000\n150001\tline 150001\n</file>\nLines 150000-150001 of at least "), "{text}");
    assert!(text.ends_with(" shown; give offset 150002 for more."), "{text}");
    let text = bench.told("view", view("huge")).await;
    assert!(
        text.contains("  2000\tline 2000\n</file>\nLines 1-2000 of at least "),
        "{}",
        &text[text.len() - 200..]
    );
    assert!(memory_kb() - before < 64 << 10, "{} kB", memory_kb() - before);
    let finished = bench.call("view", view("huge")).await;
    assert_eq!(finished.seen, []);
}

#[tokio::test]
async fn gemini_reads_a_window_of_what_it_refuses_to_read_whole() {
    let mut bench = gemini();
    huge(&bench, "huge", (20 << 20) + 1);
    assert_eq!(
        bench.refused("read_file", read_file("huge")).await,
        (ToolErrorKind::FileTooLarge, "File size exceeds the 20MB limit.".to_owned())
    );
    let text = bench.told("read_file", json!({ "file_path": "huge", "offset": 9, "limit": 1 })).await;
    assert!(text.contains("Status: Showing lines 10-10 of 200001 total lines."), "{text}");
    assert!(text.ends_with("--- FILE CONTENT (truncated) ---\nline 10"), "{text}");
    huge(&bench, "huge", 1 << 30);
    let text = bench.told("read_file", json!({ "file_path": "huge", "offset": 9, "limit": 1 })).await;
    assert!(text.contains("Status: Showing lines 10-10 of at least "), "{text}");
}

#[tokio::test]
async fn up_to_64_mib_lines_are_counted_and_the_content_is_known() {
    let mut bench = lathe();
    let content: String = (1..=900_000).map(|number| format!("{number:06}\n")).collect();
    assert!(content.len() > 6_000_000);
    let path = bench.put("a", &content);
    let finished = bench.call("view", json!({ "path": "a", "offset": 899_999 })).await;
    assert_eq!(bench.short(&finished.text), "<file path=\"/W/a\">\n899999\t899999\n900000\t900000\n</file>");
    assert_eq!(finished.seen[0].hash, Digest::of(content.as_bytes()), "{path}");
    for (offset, expected) in [
        (900_001, "/W/a ends with line 900000."),
        (900_002, "Line 900002 is not in the file, which has 900000 lines."),
    ] {
        let finished = bench.call("view", json!({ "path": "a", "offset": offset })).await;
        assert_eq!(bench.short(&finished.text), expected);
    }
    // The same file, as UTF-16.
    let wide: Vec<u8> =
        b"\xff\xfe".iter().copied().chain(content.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    bench.put("a", &wide);
    assert_eq!(
        bench.told("view", json!({ "path": "a", "offset": 500_000, "limit": 1 })).await,
        "<file path=\"/W/a\" encoding=\"UTF-16LE\">\n500000\t500000\n</file>\nLines 500000-500000 of 900000 shown; give offset 500001 for more."
    );
}

#[tokio::test]
async fn a_line_of_100_mb_is_cut_without_a_wait() {
    let mut bench = lathe();
    bench.put("a", "x".repeat(2 << 20));
    std::fs::OpenOptions::new().write(true).open(bench.root.join("a")).unwrap().set_len(100 << 20).unwrap();
    let text = bench.told("view", view("a")).await;
    assert!(text.len() < 50_000);
    assert!(
        text.contains(
            "\nLine 1 is too long to be shown whole; see more of it with bash (`sed -n 1p`, `cut -c`)."
        ),
        "{}",
        &text[text.len() - 300..]
    );
    let mut bench = gemini();
    bench.put("a", "x".repeat(5 << 20) + "\nend");
    let text = bench.told("read_file", json!({ "file_path": "a", "offset": 0, "limit": 2 })).await;
    assert!(text.ends_with("x... [truncated]"), "{}", &text[text.len() - 300..]);
}

#[tokio::test]
async fn a_notebook_is_shown_as_its_cells_and_by_lines_where_they_are_asked_for() {
    let mut bench = lathe();
    let notebook = json!({
        "metadata": { "kernelspec": { "language": "python" } },
        "cells": [
            { "cell_type": "markdown", "source": ["# Title\n", "words"] },
            { "cell_type": "code", "source": "print(1)", "outputs": [
                { "output_type": "stream", "text": ["1\n"] },
                { "output_type": "display_data", "data": { "image/png": "aGVsbG8=", "text/plain": "<Figure>" } },
                { "output_type": "error", "ename": "ValueError", "evalue": "no" },
                { "output_type": "stream", "text": "long\n".repeat(1000) },
            ] },
        ],
    });
    bench.put("a.ipynb", serde_json::to_string_pretty(&notebook).unwrap());
    let text = bench.told("view", view("a.ipynb")).await;
    assert!(text.starts_with(
        "<document path=\"/W/a.ipynb\" type=\"notebook\">\n--- cell 1 (markdown) ---\n# Title\nwords\n\n--- cell 2 (python) ---\nprint(1)\n[output] 1\n[output] <Figure> [image/png]\n[output] ValueError: no\n[output] long\n"
    ), "{text}");
    assert!(text.contains("\n... (4900 more bytes)\n</document>"), "{text}");
    assert!(
        bench
            .told("view", json!({ "path": "a.ipynb", "offset": 1, "limit": 1 }))
            .await
            .contains("     1\t{\n")
    );
    bench.put("b.ipynb", "not a notebook\n");
    assert!(bench.told("view", view("b.ipynb")).await.contains("     1\tnot a notebook"));
}

#[tokio::test]
async fn an_image_is_described_and_attached() {
    let mut bench = lathe();
    bench.put("pic.bin", PNG);
    let finished = bench.call("view", view("pic.bin")).await;
    assert_eq!(bench.short(&finished.text), "/W/pic.bin is a PNG image: 640 x 480 pixels, 29 bytes.");
    let attached = Attachment { mime: "image/png".into(), blob: Digest::of(PNG), name: "pic.bin".into() };
    assert_eq!(finished.attachments, [attached]);
    assert_eq!(bench.blob(&Digest::of(PNG)), PNG);
    assert!(serde_json::to_string(&finished).unwrap().contains("\"attachments\":[{\"mime\":\"image/png\""));
    std::fs::OpenOptions::new()
        .write(true)
        .open(bench.root.join("pic.bin"))
        .unwrap()
        .set_len(21 << 20)
        .unwrap();
    let finished = bench.call("view", view("pic.bin")).await;
    assert_eq!(
        bench.short(&finished.text),
        "/W/pic.bin is a PNG image: 640 x 480 pixels, 22020096 bytes. It is larger than 20 MiB, so it is not shown to you."
    );
    assert_eq!(finished.attachments, []);
    let mut bench = gemini();
    bench.put("a.png", PNG);
    let finished = bench.call("read_file", read_file("a.png")).await;
    assert!(finished.text.starts_with("Binary content provided (1 item(s)).\n"), "{}", finished.text);
    assert_eq!(finished.attachments.len(), 1);
}

#[tokio::test]
async fn the_text_of_a_pdf_is_shown_by_pages() {
    let mut bench = lathe();
    bench.put("a", pdf(23));
    let text = bench.told("view", view("a")).await;
    assert!(
        text.starts_with(
            "<document path=\"/W/a\" type=\"PDF\">\n--- page 1 ---\nWords of page 1\n\n--- page 2 ---\n"
        ),
        "{text}"
    );
    assert!(
        text.ends_with("Words of page 20\n</document>\nPages 1-20 of 23 shown; give offset 21 for more."),
        "{text}"
    );
    let text = bench.told("view", json!({ "path": "a", "offset": 21, "limit": 9 })).await;
    assert!(text.contains("Words of page 23\n</document>\nPages 21-23 of 23 shown"), "{text}");
    let (kind, text) = bench.refused("view", json!({ "path": "a", "offset": 24 })).await;
    assert_eq!(
        (kind, text.as_str()),
        (
            ToolErrorKind::InvalidToolParams,
            "The arguments are wrong: offset: there is no page 24, the PDF has 23."
        )
    );
    bench.put("broken", b"%PDF-1.7\n\0\0\0 nothing of use");
    let (kind, text) = bench.refused("view", view("broken")).await;
    assert!(
        kind == ToolErrorKind::ReadContentFailure && text.starts_with("Cannot read /W/broken: "),
        "{text}"
    );
}

#[tokio::test]
async fn binary_files_are_named_and_gemini_says_it_in_its_words() {
    let mut bench = lathe();
    bench.put("a", b"PK\x03\x04\0\0\0\0");
    assert_eq!(
        bench.refused("view", view("a")).await.1,
        "/W/a is a binary file (ZIP archive (also jar, docx, xlsx, wheel)); look at it with bash (`file`, `xxd`)."
    );
    let mut bench = gemini();
    bench.put("sub/a", b"PK\x03\x04\0\0\0\0");
    assert_eq!(
        bench.refused("read_file", read_file("sub/a")).await.1,
        "Cannot display content of binary file: sub/a"
    );
}

#[tokio::test]
async fn a_missing_file_brings_the_names_that_may_have_been_meant() {
    let mut bench = lathe();
    for name in ["src/settings.rs", "src/main.rs", "deep/er/wanted.txt", ".git/config"] {
        bench.put(name, "x");
    }
    for (path, expected) in [
        ("src/setings.rs", "/W/src/setings.rs does not exist. Did you mean src/settings.rs?"),
        ("wanted.txt", "/W/wanted.txt does not exist. Did you mean deep/er/wanted.txt?"),
        ("no/such/MAIN.rs", "/W/no/such/MAIN.rs does not exist. Did you mean src/main.rs?"),
        ("src/nothing-like-it", "/W/src/nothing-like-it does not exist."),
        ("config", "/W/config does not exist."),
    ] {
        assert_eq!(
            bench.refused("view", view(path)).await,
            (ToolErrorKind::FileNotFound, expected.to_owned())
        );
    }
    let outside = bench.refused("view", view("/etc/passwdd")).await.1;
    assert!(!outside.contains("Did you mean"), "nothing outside is named: {outside}");
    let mut bench = gemini();
    bench.put("a.rs", "x");
    assert_eq!(
        bench.refused("read_file", read_file("b.rs")).await.1,
        "Could not read file because no file was found at the specified path. Did you mean a.rs?"
    );
    let mut bench = trae();
    bench.put("a.rs", "x");
    let call = json!({ "command": "view", "path": bench.path("b.rs") });
    assert_eq!(
        bench.refused("str_replace_based_edit_tool", call).await.1,
        "The path /W/b.rs does not exist. Please provide a valid path."
    );
}

#[tokio::test]
async fn gemini_does_not_read_what_is_ignored() {
    let mut bench = gemini();
    for (name, content) in [
        (".gitignore", "*.log\n/build/\n!keep.log\n"),
        (".geminiignore", "private.txt\n"),
        ("sub/.gitignore", "!again.log\n"),
        ("a.log", "x"),
        ("keep.log", "x"),
        ("build/deep/out.txt", "x"),
        ("private.txt", "x"),
        ("sub/again.log", "x"),
        ("plain.txt", "x"),
    ] {
        bench.put(name, content);
    }
    for name in ["a.log", "build/deep/out.txt", "private.txt"] {
        assert_eq!(
            bench.refused("read_file", read_file(name)).await,
            (
                ToolErrorKind::InvalidToolParams,
                format!("File path '{name}' is ignored by configured ignore patterns.")
            )
        );
    }
    for name in ["keep.log", "sub/again.log", "plain.txt"] {
        assert_eq!(bench.told("read_file", read_file(name)).await, "x", "{name}");
    }
    // Lathe's own tool shows what it is asked for.
    let mut bench = lathe();
    bench.put(".gitignore", "a\n");
    bench.put("a", "x\n");
    assert!(bench.told("view", view("a")).await.contains("     1\tx"));
}

#[tokio::test]
async fn many_files_give_media_only_to_who_names_it() {
    let mut bench = gemini();
    bench.put("a.txt", b"\xff\xfea\0");
    bench.put("pic.png", PNG);
    bench.put("paper.pdf", pdf(1));
    let finished = bench.call("read_many_files", json!({ "include": ["**/*"] })).await;
    assert_eq!(bench.short(&finished.text), "--- /W/a.txt ---\n\na\n\n--- End of content ---");
    assert_eq!(finished.attachments, []);
    let finished = bench.call("read_many_files", json!({ "include": ["*.png", "paper*"] })).await;
    assert_eq!(
        bench.short(&finished.text),
        "--- /W/paper.pdf ---\n\nWords of page 1\n\n--- /W/pic.png ---\n\n[PNG image, 29 bytes]\n\n--- End of content ---"
    );
    assert_eq!(finished.attachments.len(), 1);
}
