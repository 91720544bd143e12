// Package lossydisk is a file system that loses what was not fsynced at a simulated
// power cut. It forwards everything to a directory and remembers of each file its size at
// its last fsync, and the blocks that were overwritten since (an undo log). So a file is
// afterwards what it was at that fsync, whether a program appends, as Redis does to its
// append-only file, or writes in place, as etcd does to its log and its database. A real
// disk may also keep some of what was not fsynced; this one keeps none of it. Names,
// truncations and removals are durable at once. The idea is from LazyFS
// (dsrhaslab/lazyfs).
//
// Read [Disk] first. It needs Linux, FUSE and root.
package lossydisk

// fsName is the name of its mounts in /proc/mounts.
const fsName = "lockchaos-disk"
