//! Which elements a search may return.

/// A condition on elements, as a search applies it.
pub trait Filter: Sync {
    /// Whether the element may be returned. Asked once for each element at most, and for many that
    /// are not near the query, so it should cost less than a distance.
    fn admits(&self, name: &[u8], attributes: Option<&[u8]>) -> bool;
}

impl<F: Fn(&[u8], Option<&[u8]>) -> bool + Sync> Filter for F {
    fn admits(&self, name: &[u8], attributes: Option<&[u8]>) -> bool {
        self(name, attributes)
    }
}
