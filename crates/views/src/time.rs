//! Times and durations as text.

use lathe_protocol::Timestamp;

/// A function that writes a time in the reader's zone.
pub(crate) type LocalTime<'a> = &'a dyn Fn(Timestamp) -> String;

/// ISO 8601 in UTC without a zone, as Python's `isoformat` writes a naive time: the fraction is left out when it is zero.
pub(crate) fn iso_without_zone(at: Timestamp) -> String {
    if at.subsec_nanosecond() / 1000 == 0 {
        at.strftime("%Y-%m-%dT%H:%M:%S").to_string()
    } else {
        at.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string()
    }
}

/// The day in UTC.
pub(crate) fn utc_day(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

/// Milliseconds from one time to another; zero when the clock went back.
pub(crate) fn between_ms(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond() - from.as_millisecond()).unwrap_or(0)
}

/// A duration for people: the two largest units, or less.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..=9 => format!("{}.{} s", seconds, ms % 1000 / 100),
        10..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_time_is_written_as_python_writes_a_naive_one() {
        assert_eq!(iso_without_zone(at("2026-11-15T09:09:53.266Z")), "2026-11-15T09:09:53.266000");
        assert_eq!(iso_without_zone(at("2026-11-15T09:09:53Z")), "2026-11-15T09:09:53");
    }

    #[test]
    fn a_duration_has_at_most_two_units() {
        let shown = [0, 999, 1_540, 12_000, 61_000, 3_720_000].map(duration);
        assert_eq!(shown, ["0 ms", "999 ms", "1.5 s", "12 s", "1 m 01 s", "1 h 02 m"]);
    }

    #[test]
    fn a_clock_that_went_back_gives_no_time() {
        assert_eq!(between_ms(at("2026-11-15T09:00:01Z"), at("2026-11-15T09:00:00Z")), 0);
    }
}
