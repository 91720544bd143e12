// Package lossydisk is a file system that loses unfsynced data at a simulated power cut. It forwards everything to a
// directory and records for each file the size at its last fsync, and the blocks that were overwritten since then (an
// undo log). After the power cut a file has the content of that fsync, whether a program appends, as Redis does to its
// append-only file, or writes in place, as etcd does to its log and its database. A real disk may also keep some
// unfsynced data; this one keeps none. Names, truncations and removals are durable at once. The idea is from LazyFS
// (dsrhaslab/lazyfs). It can also be slow: each fsync then takes as long as [Disk.Slow] sets.
//
// Read [Disk] first. It needs Linux, FUSE and root.
package lossydisk

// fsName is the name of its mounts in /proc/mounts.
const fsName = "lockchaos-disk"
