package engine

import (
	"cmp"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"unsafe"
)

// dict is a map in order of insertion, so that no reply depends on the order of a Go
// map. The zero value is empty.
//
// A small dict is searched linearly, as a listpack in Redis: the hash of a lock is
// created and removed all the time, and an index would cost more.
type dict[V any] struct {
	list  []entry[V]
	index map[string]int // nil while small
	live  int
	seq   uint64 // of the last entry
}

type entry[V any] struct {
	key  string
	val  V
	seq  uint64 // grows with each insertion; the cursor of SCAN
	live bool
}

const few = 16

// view is b as a string without a copy, for lookups; it must not outlive b.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (d *dict[V]) find(key string) int {
	if d.index != nil {
		if i, ok := d.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range d.list {
		if d.list[i].key == key {
			return i
		}
	}
	return -1
}

func (d *dict[V]) get(key string) (v V, ok bool) {
	if i := d.find(key); i >= 0 {
		return d.list[i].val, true
	}
	return v, false
}

func (d *dict[V]) has(key string) bool { return d.find(key) >= 0 }

// set sets key, and reports whether it is new. It keeps no reference to key.
func (d *dict[V]) set(key string, v V) bool {
	if i := d.find(key); i >= 0 {
		d.list[i].val = v
		return false
	}
	key = strings.Clone(key)
	d.seq++
	d.list = append(d.list, entry[V]{key: key, val: v, seq: d.seq, live: true})
	d.live++
	if d.index != nil {
		d.index[key] = len(d.list) - 1
	} else if len(d.list) > few {
		d.reindex()
	}
	return true
}

func (d *dict[V]) del(key string) (v V, ok bool) {
	i := d.find(key)
	if i < 0 {
		return v, false
	}
	v = d.list[i].val
	d.live--
	if d.index == nil {
		d.list = slices.Delete(d.list, i, i+1)
		return v, true
	}
	delete(d.index, d.list[i].key)
	d.list[i] = entry[V]{seq: d.list[i].seq}
	if dead := len(d.list) - d.live; dead > few && dead > d.live {
		d.list = slices.DeleteFunc(d.list, func(e entry[V]) bool { return !e.live })
		d.index = nil
		if len(d.list) > few {
			d.reindex()
		}
	}
	return v, true
}

func (d *dict[V]) reindex() {
	d.index = make(map[string]int, 2*len(d.list))
	for i := range d.list {
		d.index[d.list[i].key] = i
	}
}

func (d *dict[V]) len() int { return d.live }

// all iterates over the entries in order of insertion; the dict must not be modified
// meanwhile.
func (d *dict[V]) all() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for i := range d.list {
			if e := &d.list[i]; e.live && !yield(e.key, e.val) {
				return
			}
		}
	}
}

// names are the keys in order of insertion.
func (d *dict[V]) names() []string {
	names := make([]string, 0, d.live)
	for name := range d.all() {
		names = append(names, name)
	}
	return names
}

// after is the index of the first entry after sequence number seq.
func (d *dict[V]) after(seq uint64) int {
	i, _ := slices.BinarySearchFunc(d.list, seq+1, func(e entry[V], seq uint64) int { return cmp.Compare(e.seq, seq) })
	return i
}

// any is a random key; there must be one.
func (d *dict[V]) any(r *rand.Rand) string {
	for {
		if e := &d.list[r.IntN(len(d.list))]; e.live {
			return e.key
		}
	}
}
