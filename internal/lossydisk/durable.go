package lossydisk

import (
	"errors"
	"io"
	"os"
)

// blockSize is the unit in which a disk writes.
const blockSize = 4096

// durable is the part of a file that survives a power cut. nil is an empty file.
type durable struct {
	size int64            // of the file when it was last fsynced
	undo map[int64][]byte // by block: its content then, if it was written since
}

// save saves the blocks of a file that a write of n bytes at off is about to change.
func (k *durable) save(from io.ReaderAt, off, n int64) error {
	end := min(off+n, k.size)
	for block := off / blockSize; block*blockSize < end; block++ {
		if _, saved := k.undo[block]; saved {
			continue
		}
		start := block * blockSize
		old := make([]byte, min(blockSize, k.size-start))
		if _, err := from.ReadAt(old, start); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if k.undo == nil {
			k.undo = map[int64][]byte{}
		}
		k.undo[block] = old
	}
	return nil
}

// truncate records that the file now has that size, which is durable at once.
func (k *durable) truncate(size int64) {
	if k == nil || size >= k.size {
		return
	}
	k.size = size
	for block, old := range k.undo { // in any order: they are independent
		switch start := block * blockSize; {
		case start >= size:
			delete(k.undo, block)
		case start+int64(len(old)) > size:
			k.undo[block] = old[:size-start]
		}
	}
}

// restore restores the file at path, which has that size, to its last fsync. It returns how many bytes that changed.
func (k *durable) restore(path string, size int64) (lost int64, err error) {
	if k == nil {
		k = &durable{}
	}
	if size <= k.size && len(k.undo) == 0 {
		return 0, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for block, old := range k.undo { // in any order: they are independent
		now := make([]byte, len(old))
		if _, err := f.ReadAt(now, block*blockSize); err != nil && !errors.Is(err, io.EOF) {
			return lost, err
		}
		for i := range now {
			if now[i] != old[i] {
				lost++
			}
		}
		if _, err := f.WriteAt(old, block*blockSize); err != nil {
			return lost, err
		}
	}
	k.undo = nil
	if size <= k.size {
		return lost, nil
	}
	return lost + size - k.size, f.Truncate(k.size)
}
