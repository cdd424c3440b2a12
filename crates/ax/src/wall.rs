//! `ax wall` and `ax nest`: the last steps before a program of a session begins, taken inside its jail.
//!
//! The host describes both in one note, a file in memory whose descriptor is inherited. `ax nest` comes before
//! bubblewrap, in a user and mount namespace of its own: it puts a private layer over the user's home, which
//! bubblewrap 0.8 cannot do, and restores the folders below it that must stay real. `ax wall` comes after
//! bubblewrap, or alone where there is none: it closes every descriptor that was not meant for the program, gives up
//! all capabilities, and lets the kernel limit files (landlock) and system calls (seccomp) from then on.
//!
//! A step that fails ends the process before the program begins. Only the layer over the home may be missing: then
//! bubblewrap gets the other arguments, in which the home is read-only.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::confine::{self, Access};

/// The exit code if a wall cannot be built.
const NO_WALL: u8 = 124;

/// The parts of a note.
#[derive(Default)]
struct Note {
    folder: PathBuf,
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    umask: Option<u32>,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    devices: Vec<PathBuf>,
    /// Limits of resources: number and value.
    limits: Vec<(u32, u64)>,
    filter: Vec<u8>,
    kept: Vec<i32>,
    landlock: Landlock,
    layers: Vec<Layer>,
    /// A port for a listener, and the socket over which it is sent.
    listener: Option<(u16, i32)>,
    /// Folders that are the real ones in spite of a layer over them.
    real: Vec<PathBuf>,
}

/// The use of landlock.
#[derive(Default, PartialEq, Eq)]
enum Landlock {
    /// The kernel has none.
    #[default]
    Absent,
    Files,
    /// Limits files, and refuses every connection.
    FilesAndNetwork,
}

/// A private layer over a folder.
struct Layer {
    folder: PathBuf,
    upper: PathBuf,
    work: PathBuf,
}

/// Builds the walls of a note and becomes its program.
pub fn wall(note: &OsStr) -> u8 {
    let error = match read(note).and_then(|(note, file)| enclose(note, file)) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    crate::complain(&format!("ax: the walls cannot be built: {error}"));
    NO_WALL
}

/// Adds the layers of a note and becomes the program that follows. If a layer is missing, the program gets the
/// arguments of the descriptor `without` instead.
pub fn nest(note: &OsStr, without: &OsStr, words: &[OsString]) -> u8 {
    let error = match read(note) {
        Ok((note, mut file)) => {
            let has_layers = add_layers(&note);
            match file.rewind() {
                Ok(()) if has_layers => become_program(words),
                Ok(()) => become_program(&with_other_arguments(words, without)),
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    crate::complain(&format!("ax: the jail cannot be started: {error}"));
    NO_WALL
}

fn become_program(words: &[OsString]) -> io::Error {
    match words.split_first() {
        Some((program, arguments)) => Command::new(program).args(arguments).exec(),
        None => ErrorKind::InvalidInput.into(),
    }
}

/// The words with another descriptor after `--args`.
fn with_other_arguments(words: &[OsString], descriptor: &OsStr) -> Vec<OsString> {
    let mut words = words.to_vec();
    let place = words.iter().position(|word| word == "--args").and_then(|at| words.get_mut(at + 1));
    place.into_iter().for_each(|word| *word = descriptor.to_owned());
    words
}

/// Mounts the layers. False if one of them is missing: what is below it must not be written then.
fn add_layers(note: &Note) -> bool {
    if confine::enter_own_namespaces().is_err() {
        return false;
    }
    // Opened now: a layer hides them, and the kernel mounts no place of another namespace.
    let real: Vec<_> =
        note.real.iter().filter_map(|path| Some((confine::open_place(path).ok()?, path))).collect();
    for Layer { folder, upper, work } in &note.layers {
        let is_plain =
            |path: &&PathBuf| !path.as_os_str().as_bytes().iter().any(|byte| b",:\\".contains(byte));
        if ![folder, upper, work].iter().all(is_plain) {
            return false;
        }
        let options = [
            &b"lowerdir="[..],
            folder.as_os_str().as_bytes(),
            b",upperdir=",
            upper.as_os_str().as_bytes(),
            b",workdir=",
            work.as_os_str().as_bytes(),
            b",userxattr",
        ];
        if confine::mount_layer(folder, &options.concat()).is_err() {
            return false;
        }
        for (place, path) in real.iter().filter(|(_, path)| path.starts_with(folder)) {
            if let Err(error) = confine::mount_again(place, path) {
                crate::complain(&format!("ax: {} is not the real one: {error}", path.display()));
                std::process::exit(NO_WALL.into());
            }
        }
    }
    true
}

/// Only returns if a wall, or the program, could not be started.
fn enclose(note: Note, file: File) -> io::Result<std::convert::Infallible> {
    if let Some((port, socket)) = note.listener {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        confine::send_descriptor(socket, listener.as_raw_fd())?;
    }
    confine::close_all_but(&note.kept)?;
    drop(file);
    if let Some(umask) = note.umask {
        confine::set_umask(umask);
    }
    for (resource, most) in &note.limits {
        confine::limit(*resource, *most)?;
    }
    std::env::set_current_dir(&note.folder).map_err(|error| named(&note.folder, error))?;
    confine::drop_capabilities()?;
    if note.landlock != Landlock::Absent {
        let network = note.landlock == Landlock::FilesAndNetwork;
        let everywhere = [(PathBuf::from("/"), Access::List)];
        let places = everywhere
            .into_iter()
            .chain(note.readable.into_iter().map(|path| (path, Access::Read)))
            .chain(note.writable.into_iter().map(|path| (path, Access::Write)))
            .chain(note.devices.into_iter().map(|path| (path, Access::Device)));
        confine::limit_files(places, network)?;
    }
    // Landlock without a filter would be half a wall; neither is level 1, which limits resources only.
    if !note.filter.is_empty() || note.landlock != Landlock::Absent {
        confine::limit_calls(&note.filter)?;
    }
    let (program, arguments) = note.words.split_first().ok_or(ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(note.environment);
    Err(named(program.as_ref(), command.exec()))
}

fn named(path: &std::path::Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Reads the note from an inherited descriptor.
fn read(number: &OsStr) -> io::Result<(Note, File)> {
    let number = number.to_str().and_then(|number| number.parse().ok()).ok_or(ErrorKind::InvalidInput)?;
    let mut file = confine::inherited(number)?;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // `nest` hands the descriptor on; `wall` closes it.
    let note = parse(&bytes).ok_or(ErrorKind::InvalidData)?;
    debug_assert_eq!(file.as_raw_fd(), number);
    Ok((note, file))
}

fn parse(mut bytes: &[u8]) -> Option<Note> {
    let mut note = Note::default();
    while let Some((kind, rest)) = bytes.split_first() {
        let (size, rest) = rest.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        bytes = rest;
        let path = || PathBuf::from(OsString::from_vec(value.to_vec()));
        let number = || u32::from_le_bytes(value.first_chunk().copied().unwrap_or_default());
        match kind {
            b'D' => note.folder = path(),
            b'A' => note.words.push(path().into_os_string()),
            b'E' => {
                let at = value.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
                let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
                note.environment.push((text(&value[..at]), text(&value[at + 1..])));
            }
            b'U' => note.umask = Some(number()),
            b'R' => note.readable.push(path()),
            b'W' => note.writable.push(path()),
            b'V' => note.devices.push(path()),
            b'L' => {
                let most = value.get(4..).and_then(|most| most.first_chunk()).copied()?;
                note.limits.push((number(), u64::from_le_bytes(most)));
            }
            b'F' => note.filter = value.to_vec(),
            b'K' => note.kept.push(number() as i32),
            b'G' => {
                note.landlock = if number() == 0 { Landlock::Files } else { Landlock::FilesAndNetwork };
            }
            b'O' => {
                let mut parts =
                    value.split(|byte| *byte == 0).map(|part| PathBuf::from(OsStr::from_bytes(part)));
                note.layers.push(Layer { folder: parts.next()?, upper: parts.next()?, work: parts.next()? });
            }
            b'N' => {
                let socket = value.get(4..).and_then(|socket| socket.first_chunk()).copied()?;
                note.listener = Some((u16::try_from(number()).ok()?, i32::from_le_bytes(socket)));
            }
            b'B' => note.real.push(path()),
            _ => return None,
        }
    }
    let is_c_text = |word: &OsString| CString::new(word.as_bytes()).is_ok();
    (!note.words.is_empty() && note.words.iter().all(is_c_text)).then_some(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: u8, value: &[u8]) -> Vec<u8> {
        [&[kind][..], &(value.len() as u32).to_le_bytes(), value].concat()
    }

    #[test]
    fn without_a_layer_bubblewrap_gets_the_other_arguments() {
        let words =
            ["/usr/bin/bwrap", "--args", "7", "--", "/ax", "wall", "8", "--args", "9"].map(OsString::from);
        let other = with_other_arguments(&words, OsStr::new("6"));
        assert_eq!(other, ["/usr/bin/bwrap", "--args", "6", "--", "/ax", "wall", "8", "--args", "9"]);
    }

    #[test]
    fn a_note_is_read_whole_or_not_at_all() {
        let limit = [&7_u32.to_le_bytes()[..], &99_u64.to_le_bytes()].concat();
        let whole = [
            part(b'D', b"/w"),
            part(b'A', b"/bin/sh"),
            part(b'A', b"-c"),
            part(b'E', b"A=b=c"),
            part(b'L', &limit),
            part(b'O', b"/h\0/u\0/k"),
            part(b'G', &1_u32.to_le_bytes()),
        ]
        .concat();
        let note = parse(&whole).unwrap();
        assert_eq!((note.folder, note.words.len()), (PathBuf::from("/w"), 2));
        assert_eq!(note.environment, [("A".into(), "b=c".into())]);
        assert_eq!(note.limits, [(7, 99)]);
        assert!(note.landlock == Landlock::FilesAndNetwork);
        assert_eq!(note.layers.first().map(|layer| layer.work.clone()), Some("/k".into()));
        for cut in 1..whole.len() {
            let shorter = parse(&whole[..cut]);
            assert!(shorter.is_none_or(|note| note.words.len() < 2 || cut >= 20), "{cut}");
        }
        assert!(parse(&part(b'?', b"")).is_none());
        assert!(parse(&[]).is_none());
    }
}
