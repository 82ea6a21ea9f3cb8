//! What only the binary can know of, and ask from, the machine, the process and its allocator.

/// Asked by INFO, MEMORY and CONFIG; the binary answers from the system and its allocator.
pub trait Host: Send + Sync {
    /// The figures of this moment.
    fn figures(&self) -> HostFigures;

    /// Makes room for so many connections, or says for how many the system has room.
    fn allow_clients(&self, clients: u32) -> Result<(), u32>;

    /// The allocator's own report, for people.
    fn allocator_report(&self) -> String;

    /// Gives the pages that the allocator holds and nobody uses back to the system.
    fn purge_allocator(&self);
}

/// Figures of one moment. What cannot be found out is zero or empty.
#[derive(Clone, Debug, Default)]
pub struct HostFigures {
    /// Name, release and hardware of the operating system.
    pub os: String,
    /// Bytes of the process that are in memory.
    pub resident_bytes: u64,
    /// Bytes of memory that the machine has.
    pub machine_bytes: u64,
    /// Seconds of processor time spent in the process itself.
    pub user_seconds: f64,
    /// Seconds of processor time spent in the kernel for it.
    pub system_seconds: f64,
    /// Bytes handed out by the allocator.
    pub allocated_bytes: u64,
    /// Bytes of pages that the allocator has something in.
    pub active_bytes: u64,
    /// Bytes of pages that the allocator holds in memory.
    pub allocator_resident_bytes: u64,
}
