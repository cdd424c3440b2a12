//! A session as frames for the wire, made from its journal.

use std::path::PathBuf;

use lathe_journal::SessionReader;
use lathe_protocol::{Event, RunNo, Seq, SessionId, StepNo};
use lathe_views::{Cursor, Projector, WireFrame};

use crate::archive::Archive;
use crate::error::HostError;
use crate::files::own::{own_folder, own_write};

/// Number of events read at once.
const BATCH: usize = 128;

impl Archive {
    /// The frames of a session after a cursor. `near` is a projection whose position is before the cursor, if there
    /// is one; without it the run of the cursor is read from its beginning.
    pub fn frames(
        &self,
        id: &SessionId,
        from: Cursor,
        near: Option<Projector>,
    ) -> Result<FrameReader, HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        // Part of the event was delivered: the event is projected again, and the frames already delivered are left
        // out.
        let before = if from.part == u32::MAX { from.seq } else { Seq(from.seq.0.saturating_sub(1)) };
        let near = near.filter(|projector| projector.last() <= before);
        let projector = match near {
            Some(projector) => projector,
            None => {
                let mut projector = Projector::new(id.clone(), &self.trajectories().display().to_string());
                let (landmarks, after) = reader.run_landmarks(before)?;
                for event in &landmarks {
                    projector.take(event, &|_, _| Vec::new());
                }
                projector.skip_to(after);
                projector
            }
        };
        Ok(FrameReader { reader, projector, from })
    }

    /// The events of a session after a given one, rewound or not.
    pub fn event_reader(&self, id: &SessionId, after: Seq) -> Result<EventReader, HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let workspace = self.workspace(id)?.to_string_lossy().into_owned();
        Ok(EventReader { reader, workspace, last: after })
    }

    /// The frames of the live branch that are of these kinds. Events that a rewind dropped have no frames here.
    pub fn live_frames(
        &self,
        id: &SessionId,
        only: &'static [&'static str],
    ) -> Result<(Vec<WireFrame>, Cursor), HostError> {
        let trajectories = self.trajectories().display().to_string();
        let mut projector = Projector::new(id.clone(), &trajectories).only(only);
        let mut frames = Vec::new();
        for event in self.events(id)? {
            frames.extend(projector.take(&event, &|_, _| Vec::new()));
        }
        Ok((frames, Cursor::after(projector.last())))
    }

    /// Writes the trajectory of a session's last run to the path that the frames of the session name.
    pub fn write_trajectory_file(&self, id: &SessionId) -> Result<PathBuf, HostError> {
        let events = self.last_run(id)?;
        let run = events.last().map_or(RunNo(1), |event| event.place.run);
        let ending = if run <= RunNo(1) { String::new() } else { format!("-{run}") };
        let (folder, path) = (self.trajectories(), self.trajectories().join(format!("{id}{ending}.json")));
        let text = self.trajectory(id)?;
        let written = own_folder(&folder).and_then(|()| own_write(&path, text.as_bytes()));
        written.map(|()| path.clone()).map_err(|error| {
            HostError::of_disk(&error, error.to_string(), |reason| HostError::Home { path, reason })
        })
    }

    /// The folder for the trajectory files of a server's sessions.
    pub fn trajectories(&self) -> PathBuf {
        self.home().trajectories()
    }
}

/// A reader of events, for clients that make their own view of a session. It can be read again at any time.
pub struct EventReader {
    reader: SessionReader,
    workspace: String,
    last: Seq,
}

impl EventReader {
    /// The next events as frames, up to the named one, and true if there are more.
    pub fn read(
        &mut self,
        archive: &Archive,
        up_to: Option<Seq>,
    ) -> Result<(Vec<WireFrame>, bool), HostError> {
        let mut events = self.reader.after(self.last, BATCH)?;
        let read = events.len();
        events.retain(|event| up_to.is_none_or(|last| event.seq <= last));
        let more = read == BATCH && events.len() == read;
        let mut frames = Vec::with_capacity(events.len());
        for event in &events {
            frames.push(WireFrame::of_event(event, &archive.recorded_diff(event, &self.workspace)?));
            self.last = event.seq;
        }
        Ok((frames, more))
    }

    pub fn last(&self) -> Seq {
        self.last
    }
}

/// A reader that turns events into frames. It can be read again at any time.
pub struct FrameReader {
    reader: SessionReader,
    projector: Projector,
    from: Cursor,
}

impl FrameReader {
    /// The next frames. Empty with `false` when all events were read; empty with `true` when the events that were
    /// read have no frames.
    pub fn read(&mut self) -> Result<(Vec<WireFrame>, bool), HostError> {
        let events = self.reader.after(self.projector.last(), BATCH)?;
        let more = events.len() == BATCH;
        let mut frames = Vec::new();
        for event in &events {
            frames.extend(self.take(event));
        }
        Ok((frames, more))
    }

    /// Feeds the next event, which the caller obtained elsewhere.
    pub fn take(&mut self, event: &Event) -> Vec<WireFrame> {
        if event.seq <= self.projector.last() {
            return Vec::new();
        }
        let reader = &self.reader;
        let past = |run: RunNo, step: StepNo| reader.of_step(run, step).unwrap_or_default();
        let mut frames = self.projector.take(event, &past);
        frames.retain(|frame| frame.cursor > self.from);
        frames
    }

    pub fn projector(&self) -> &Projector {
        &self.projector
    }

    pub fn last(&self) -> Seq {
        self.projector.last()
    }
}
