#![expect(unsafe_code, reason = "the time stamp counter is read by an instruction")]

//! Time enters Kiln here and is handed on as a value: a handler sees the clock of its view, so a
//! command sees one instant from start to end, and a test can choose the instant.
//!
//! Durations of single commands come from [`Stopwatch`]: the processor's own counter where it has
//! a steady one. The system's clock takes 25 ns and more to ask, a sixth of a pipelined command.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch, the unit of every expiry time in the keyspace.
pub type UnixMs = i64;

/// The wall clock in milliseconds since the Unix epoch.
pub fn now_ms() -> UnixMs {
    now_us() / 1_000
}

/// The wall clock in microseconds since the Unix epoch.
pub fn now_us() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX)
}

/// Measures short durations one after another.
#[derive(Debug)]
pub struct Stopwatch {
    last: u64,
    /// Nanoseconds for 2^20 ticks.
    scale: u64,
    /// When and at which tick measuring the scale began.
    origin: (Instant, u64),
}

impl Stopwatch {
    const SCALE_BITS: u32 = 20;

    /// A stopwatch that starts now.
    pub fn start() -> Self {
        let tick = ticks();
        // Until [`Stopwatch::calibrate`] knows better: one tick is a third of a nanosecond.
        let scale =
            if TICKS_ARE_NANOS { 1 << Self::SCALE_BITS } else { (1 << Self::SCALE_BITS) / 3 };
        Self { last: tick, scale, origin: (Instant::now(), tick) }
    }

    /// Starts anew.
    #[inline]
    pub fn restart(&mut self) {
        self.last = ticks();
    }

    /// Nanoseconds since the last lap or start.
    #[inline]
    pub fn lap(&mut self) -> u64 {
        let now = ticks();
        let elapsed = now.saturating_sub(self.last);
        self.last = now;
        // 128 bits: a wait of an hour must not overflow.
        ((u128::from(elapsed) * u128::from(self.scale)) >> Self::SCALE_BITS) as u64
    }

    /// Compares the counter with the system's clock. The longer since the start, the better.
    pub fn calibrate(&mut self) {
        let (instant, tick) = self.origin;
        let nanos = instant.elapsed().as_nanos() as u64;
        let elapsed = ticks().saturating_sub(tick);
        if !TICKS_ARE_NANOS && nanos > 1_000_000 && elapsed > 0 {
            self.scale = ((u128::from(nanos) << Self::SCALE_BITS) / u128::from(elapsed)) as u64;
        }
    }
}

#[cfg(target_arch = "x86_64")]
const TICKS_ARE_NANOS: bool = false;
#[cfg(not(target_arch = "x86_64"))]
const TICKS_ARE_NANOS: bool = true;

/// The processor's time stamp counter. Every x86-64 processor since 2008 counts at a constant
/// rate and in step on all cores.
#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: the instruction exists on every x86-64 processor and only reads a counter.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    static ORIGIN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    ORIGIN.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Stopwatch;

    #[test]
    fn a_calibrated_stopwatch_agrees_with_the_clock() {
        let mut watch = Stopwatch::start();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(20) {}
        watch.calibrate();
        watch.restart();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(20) {}
        let (measured, clock) = (watch.lap(), begin.elapsed().as_nanos() as u64);
        assert!(measured.abs_diff(clock) < clock / 10, "{measured} against {clock}");
    }
}
