//! The time to wait before a retry.

use std::time::Duration;

use reqwest::header::HeaderMap;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// Doubling waits with full jitter; a provider's own wait has precedence, up to a cap.
pub(crate) struct Backoff {
    attempts: u32,
    made: u32,
    /// The longest time that a provider may make us wait.
    cap: Duration,
}

impl Backoff {
    pub(crate) fn new(attempts: u32, cap: Duration) -> Self {
        Self { attempts, made: 1, cap }
    }

    /// The number of the next attempt and the wait before it. None when all are used.
    pub(crate) fn next(&mut self, told: Option<Duration>) -> Option<(u32, Duration)> {
        if self.made >= self.attempts {
            return None;
        }
        let ceiling = FIRST.saturating_mul(1 << self.made.min(10).saturating_sub(1)).min(LONGEST);
        self.made += 1;
        Some((self.made, told.unwrap_or_else(|| jittered(ceiling)).min(self.cap)))
    }
}

/// A random duration up to `ceiling`.
pub(crate) fn jittered(ceiling: Duration) -> Duration {
    let chance = lathe_protocol::random_number() % 1000;
    ceiling.mul_f64(chance as f64 / 1000.0)
}

/// `retry-after-ms`, or `retry-after` in seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name: &str| text(name)?.parse::<f64>().ok();
    if let Some(seconds) = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after")) {
        // A number too large for a duration still counts: the cap applies.
        return Duration::try_from_secs_f64(seconds).ok().or((seconds > 0.0).then_some(Duration::MAX));
    }
    let date = jiff::fmt::rfc2822::parse(text("retry-after")?).ok()?.timestamp();
    let left = date.duration_since(jiff::Timestamp::now());
    Some(Duration::try_from(left).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn told(name: &'static str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        retry_after(&headers)
    }

    #[test]
    fn a_wait_is_told_in_seconds_milliseconds_or_as_a_date() {
        assert_eq!(told("retry-after", "4"), Some(Duration::from_secs(4)));
        assert_eq!(told("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(told("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(told("retry-after", "soon"), None);
        assert_eq!(told("retry-after", "-3"), None);
        assert_eq!(told("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        let later = (jiff::Timestamp::now() + Duration::from_secs(60)).to_zoned(jiff::tz::TimeZone::UTC);
        let date = later.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let wait = told("retry-after", &date).unwrap();
        assert!((Duration::from_secs(55)..=Duration::from_secs(60)).contains(&wait), "{wait:?}");
    }

    #[test]
    fn an_absurd_wait_is_capped_and_attempts_end() {
        let mut backoff = Backoff::new(3, Duration::from_secs(60));
        assert_eq!(backoff.next(told("retry-after", "1e300")), Some((2, Duration::from_secs(60))));
        let (attempt, wait) = backoff.next(None).unwrap();
        assert!(attempt == 3 && wait <= Duration::from_secs(1));
        assert_eq!(backoff.next(None), None);
    }
}
