// Package lossydisk is a file system that loses what was not fsynced at a simulated
// power cut. It forwards everything to a directory and remembers the size of each file at
// its last fsync. It is exact for files that are only appended to, such as Redis'
// append-only file, and does not model writes in place; names, truncations and removals
// are durable at once. The idea is from LazyFS (dsrhaslab/lazyfs).
//
// Read [Disk] first. It needs Linux, FUSE and root.
package lossydisk

// fsName is the name of its mounts in /proc/mounts.
const fsName = "lockchaos-disk"
