package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

// TestStandardInput: a pipe is judged like a file, under the other readings too,
// for which it is read again.
func TestStandardInput(t *testing.T) {
	for _, name := range []string{"etcd.edn", "atlasdb.json", "history.txt", "two-holders.edn", "hazelcast.edn"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata/histories", name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			wantCode, want, _ := chaos("check", path)
			var out, errs bytes.Buffer
			code := run([]string{"check", "-"}, streams{in: iotest.HalfReader(bytes.NewReader(text)), out: &out, err: &errs})
			if code != wantCode || untimed(out.String()) != untimed(want) {
				t.Errorf("exit %d, want %d\n%s%s\nwant\n%s", code, wantCode, out.String(), errs.String(), want)
			}
		})
	}
}

// untimed is a judgement without its duration.
func untimed(s string) string {
	head, _, _ := strings.Cut(s, "judged in")
	return head
}

// TestNamedPipe reads a pipe with a path, such as a shell's <(…).
func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/histories/etcd.edn")
	if err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(path, text, 0o600) }()
	code, out, errs := chaos("check", path)
	if code != exitUnsafe || !strings.Contains(out, "SAFE with --assume not-held-ends") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

// TestStandardInputIsAFile begins at the offset of the file, and reads it twice.
func TestStandardInputIsAFile(t *testing.T) {
	text, err := os.ReadFile("testdata/histories/etcd.edn")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "h")
	if err := os.WriteFile(path, append([]byte("what was read before\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(int64(len("what was read before\n")), io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run([]string{"check", "-"}, streams{in: f, out: &out, err: &errs})
	if code != exitUnsafe || !strings.Contains(out.String(), "SAFE with --assume not-held-ends") {
		t.Errorf("exit %d\n%s%s", code, out.String(), errs.String())
	}
}

// TestSpool: bytes beyond the memory limit go to a file, and no file is left behind.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	in := &input{}
	text := bytes.Repeat([]byte("0123456789abcde\n"), (keptInMemory+1<<20)/16)
	in.from(bytes.NewReader(text))
	for _, size := range []int{100, len(text), len(text)} { // a reading may end early
		got, err := io.ReadAll(io.LimitReader(in.reader(), int64(size)))
		if err != nil || !bytes.Equal(got, text[:size]) {
			t.Fatalf("%d bytes are not what was written (%v)", len(got), err)
		}
	}
	if in.kept.file == nil {
		t.Error("all of it was kept in memory")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	in.Close()
	if _, err := in.kept.Write(nil); err != nil {
		t.Error(err)
	}
}

// TestSpoolError: without a temporary directory the error names the remedy.
func TestSpoolError(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
	k := spool{mem: make([]byte, keptInMemory)}
	if _, err := k.Write([]byte("x")); err == nil || !strings.Contains(err.Error(), "write the history to a file") ||
		!errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestJudgingFlags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	text := "client 0 acquire db 1-2 ok permits=1\nclient 1 acquire db 1-2 ok permits=1\n" +
		"client 2 acquire k 1.0-1.1 ok\nclient 3 acquire k 1.1-1.9 ok\nclient 4 acquire k 1.8-1.85 ok\n" +
		"client 4 release k 1.86-1.87 ok\nclient 2 release k 1.102-1.103 ok\n" +
		"client 5 acquire m 1-1.1 ok\nclient 5 release m 1.302-1.4 ok\nclient 6 acquire m 1.2-1.3 ok\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		flags   string
		code    int
		message string
	}{
		{"--property permits --permits db=1", exitUnsafe, "permits"},
		{"--property permits --permits 1", exitUnsafe, "permits"},
		{"--property permits --permits db=2", -1, "permits holds"},
		{"--property permits --permits dbb=2", exitUsage, "the history has no such key (did you mean db?)"},
		{"--permits db=-4", exitUsage, "must be a number from 1"},
		{"--permits db=", exitUsage, "must be a number from 1"},
		{"--permits =3", exitUsage, "no key before the ="},
		{"--permits 3 --permits 4", exitUsage, "given twice"},
		{"--permits 4294967297", exitUsage, "must be a number from 1"},
		{"--fair --property order --queue-delay 10ms", exitUnsafe, "order violated"},
		{"--fair --property order --queue-delay 10ms --max-bypass 1", -1, "order holds"},
		{"--fair --property order --queue-delay 10s", -1, "order holds"},
		{"--max-bypass 1", exitUsage, "--max-bypass needs --fair"},
		{"--fair --max-bypass -1", exitUsage, "must not be negative"},
		{"--fair --queue-delay 0s", exitUsage, "must be positive, such as 500ms"},
		{"--slack -1s", exitUsage, "must not be negative"},
		{"--slack 0s", exitUsage, "must be positive, such as 500ms"},
		{"--clock-error -1s", exitUsage, "must not be negative"},
		{"--property exclusion", exitUnsafe, "for 2 ms"},
		{"--clock-error 5ms --property exclusion", -1, "exclusion holds"},
		{"--may-be-down -1", exitUsage, "must not be negative"},
		{"--search -1s", exitUsage, "must not be negative"},
		{"--clients -3", exitUsage, "must not be negative"},
		{"--key --explain", exitUsage, "expected the names on the path to a field"},
		{"--owner value..client", exitUsage, "expected the names on the path to a field"},
		{"--lock-kind mutx", exitUsage, `--lock-kind: unknown kind "mutx" (did you mean mutex?)`},
		{"--lock-kind mutex --property exclusion", exitUnsafe, "for 2 ms"},
		{"--property exercise", exitUsage, "did you mean exercised?"},
	}
	for _, test := range tests {
		code, out, errs := chaos(append([]string{"check", path}, strings.Fields(test.flags)...)...)
		if code != test.code && test.code >= 0 || !strings.Contains(strings.Join(strings.Fields(out+errs), " "), test.message) {
			t.Errorf("%s: exit %d, want %d and %q in\n%s%s", test.flags, code, test.code, test.message, out, errs)
		}
	}
}
