// Package lossydisk is a file system that loses, at a power cut, what was not
// fsynced. It passes everything on to a folder, and remembers of each file how
// much of it was there when it was last fsynced. It is exact for files that are
// only appended to, as Redis' append-only file is, and does not model writes in
// place; names, sizes cut short and removals are durable at once, as with
// LazyFS (dsrhaslab/lazyfs), whose idea it is.
//
// Read [Disk] first. It needs Linux, FUSE and root.
package lossydisk

// FSName is the name under which its mounts appear in /proc/mounts.
const FSName = "lockchaos-disk"
