package lossydisk

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// modelSeeds is the number of random histories of a disk that are compared with the model.
const modelSeeds = 200

// modelFile is a file as the model has it: its content, and the content after a power cut.
type modelFile struct{ now, durable []byte }

// truncate is durable at once.
func (m *modelFile) truncate(size int) {
	m.now = append(slices.Clip(m.now[:min(size, len(m.now))]), make([]byte, max(0, size-len(m.now)))...)
	m.durable = m.durable[:min(size, len(m.durable))]
}

// write writes text at off. A gap before it has zeros.
func (m *modelFile) write(off int, text []byte) {
	m.now = append(slices.Clone(m.now), make([]byte, max(0, off+len(text)-len(m.now)))...)
	copy(m.now[off:], text)
}

// modelDisk runs the same steps on a disk and on its model.
type modelDisk struct {
	t      *testing.T
	disk   *Disk
	dir    string
	random *rand.Rand
	files  map[string]*modelFile
	steps  []string // of this seed, for the message of a failure
}

// TestModel: random writes in place and behind the end, truncations, renames, removals, fsyncs and power cuts leave the
// same files as a model of them.
func TestModel(t *testing.T) {
	d, dir := mounted(t)
	for seed := range uint64(modelSeeds) {
		m := &modelDisk{t, d, filepath.Join(dir, fmt.Sprint(seed)), rand.New(rand.NewPCG(seed, 0)), map[string]*modelFile{}, nil}
		if err := os.Mkdir(m.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			m.step()
		}
		m.cut()
		if err := os.RemoveAll(m.dir); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, m.steps)
		}
	}
}

// step does one random thing.
func (m *modelDisk) step() {
	name := []string{"a", "b"}[m.random.IntN(2)]
	file := m.files[name]
	kinds := []string{"write", "write", "write", "write", "sync", "truncate", "rename", "remove", "cut", "sync all"}
	kind := kinds[m.random.IntN(len(kinds))]
	if file == nil {
		kind = "create"
	}
	m.steps = append(m.steps, kind+" "+name)
	path := filepath.Join(m.dir, name)
	var err error
	switch kind {
	case "create":
		m.files[name], err = &modelFile{}, os.WriteFile(path, nil, 0o644)
	case "write":
		err = m.write(path, file)
	case "sync":
		file.durable, err = slices.Clone(file.now), withFile(path, (*os.File).Sync)
	case "truncate":
		size := m.random.IntN(len(file.now) + blockSize)
		file.truncate(size)
		err = os.Truncate(path, int64(size))
	case "rename":
		m.files[name], err = nil, os.Rename(path, filepath.Join(m.dir, "b"))
		m.files["b"] = file
	case "remove":
		m.files[name], err = nil, os.Remove(path)
	case "cut":
		m.cut()
	case "sync all":
		for _, f := range m.files {
			if f != nil {
				f.durable = slices.Clone(f.now)
			}
		}
		err = m.disk.Sync()
	}
	if err != nil {
		m.t.Fatal(m.steps, err)
	}
}

// write writes at a random place of a file, in one or more blocks, within the file or behind its end.
func (m *modelDisk) write(path string, file *modelFile) error {
	off := m.random.IntN(len(file.now) + 100)
	text := bytes.Repeat([]byte{byte('a' + m.random.IntN(26))}, 1+m.random.IntN(2*blockSize))
	file.write(off, text)
	return withFile(path, func(f *os.File) error {
		_, err := f.WriteAt(text, int64(off))
		return err
	})
}

func withFile(path string, do func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// cut compares the files before a power cut, cuts the power, and compares the rest.
func (m *modelDisk) cut() {
	m.compare("before a cut")
	var want int64
	for _, f := range m.files {
		if f == nil {
			continue
		}
		want += int64(len(f.now) - len(f.durable))
		for i, b := range f.durable {
			if f.now[i] != b {
				want++
			}
		}
		f.now = slices.Clone(f.durable)
	}
	cut(m.t, m.disk, want)
	m.compare("after a cut")
}

func (m *modelDisk) compare(when string) {
	for name, f := range m.files {
		if f == nil {
			continue
		}
		if got, err := os.ReadFile(filepath.Join(m.dir, name)); err != nil || !bytes.Equal(got, f.now) {
			m.t.Errorf("%s, %s has %d bytes, %v, want %d, or others", when, name, len(got), err, len(f.now))
		}
	}
}

// TestOverwritten: writes in place since the last fsync are undone, also of a program that may only write.
func TestOverwritten(t *testing.T) {
	d, dir := mounted(t)
	path := filepath.Join(dir, "log")
	write(t, path, "0123456789", true)
	for _, text := range []string{"ab", "c"} {
		if err := withFile(path, func(f *os.File) error {
			_, err := f.WriteAt([]byte(text), 3)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	want(t, path, "012cb56789")
	cut(t, d, 2)
	want(t, path, "0123456789")
}
