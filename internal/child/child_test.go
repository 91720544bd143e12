package child

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain runs the child: with CHILD_ROLE set, this binary is the program under test.
func TestMain(m *testing.M) {
	switch os.Getenv("CHILD_ROLE") {
	case "":
		os.Exit(m.Run())
	case "echo":
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println("heard", in.Text())
		}
		os.Exit(3)
	case "chatter":
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 1000))
		fmt.Fprint(os.Stderr, "the last line\n\n")
		os.Exit(3)
	case "parent": // starts a child and waits to be killed
		p, err := Start(Spec{Path: "sleep", Args: []string{"600"}})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		select {}
	}
}

func self(t *testing.T, role string) Spec {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Path: path, Env: append(os.Environ(), "CHILD_ROLE="+role), Pipes: true,
		Stderr: filepath.Join(t.TempDir(), "stderr")}
}

func start(t *testing.T, spec Spec) *Process {
	t.Helper()
	p, err := Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func TestPipesAndExitCode(t *testing.T) {
	p := start(t, self(t, "echo"))
	fmt.Fprintln(p.Stdin(), "hello")
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	if err != nil || line != "heard hello\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	p.Stdin().Close()
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("Wait = %v, want exit code 3", err)
	}
	if p.PID() != 0 {
		t.Errorf("PID = %d after the end, want 0", p.PID())
	}
	if err := p.Stop(); !errors.Is(err, ErrExited) {
		t.Errorf("Stop after the end = %v, want ErrExited", err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill after the end = %v", err)
	}
}

func TestStopAndContinue(t *testing.T) {
	p := start(t, self(t, "echo"))
	out := bufio.NewReader(p.Stdout())
	fmt.Fprintln(p.Stdin(), "one")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if s, err := Stat(p.PID()); err != nil || s.State != 'T' {
		t.Fatalf("state %c, %v, want T", s.State, err)
	}
	fmt.Fprintln(p.Stdin(), "two")
	got := make(chan string, 1)
	go func() {
		line, _ := out.ReadString('\n')
		got <- line
	}()
	select {
	case line := <-got:
		t.Fatalf("a stopped process wrote %q", line)
	case <-time.After(50 * time.Millisecond):
	}
	if err := p.Continue(); err != nil {
		t.Fatal(err)
	}
	if line := <-got; line != "heard two\n" {
		t.Errorf("read %q", line)
	}
}

func TestKillEndsAStoppedProcessAndItsGroup(t *testing.T) {
	p := start(t, Spec{Path: "sh", Args: []string{"-c", "sleep 600 & echo $!; wait"}, Pipes: true})
	var grandchild int
	if _, err := fmt.Fscan(p.Stdout(), &grandchild); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if at := p.Killed(); !at.IsZero() {
		t.Errorf("killed at %v before Kill", at)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	at := p.Killed()
	if _ = p.Kill(); at.IsZero() || p.Killed() != at {
		t.Errorf("killed at %v, after a second Kill at %v", at, p.Killed())
	}
	if !ends(grandchild) {
		t.Errorf("process %d, started by the child, is still running", grandchild)
	}
}

// TestMarkReachesOtherSessions: a process that left the group is stopped, continued and killed with the child, whether
// its parent lives (descent) or has exited (mark).
func TestMarkReachesOtherSessions(t *testing.T) {
	for _, script := range []string{"setsid sleep 600 & echo $!; read line", "(setsid sleep 600 & echo $!); read line"} {
		mark := "CHILD_TEST=" + t.Name() + strconv.Itoa(len(script))
		p := start(t, Spec{Path: "sh", Args: []string{"-c", script}, Pipes: true, Mark: mark})
		var stray int
		if _, err := fmt.Fscan(p.Stdout(), &stray); err != nil {
			t.Fatal(err)
		}
		for !hasOwnGroup(stray) { // until setsid has been called
			runtime.Gosched()
		}
		state := func(want byte) {
			t.Helper()
			if s, err := Stat(stray); err != nil || (s.State == 'T') != (want == 'T') {
				t.Errorf("%s: state %c, %v, want %c", script, s.State, err, want)
			}
		}
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		state('T')
		if err := p.Continue(); err != nil {
			t.Fatal(err)
		}
		state('S')
		if found := Marked("CHILD_TEST"); !slices.ContainsFunc(found, func(m Member) bool { return m.PID == stray }) {
			t.Errorf("%s: %d is not among %v", script, stray, found)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		if !ends(stray) {
			t.Errorf("%s: process %d is still running", script, stray)
		}
	}
}

func hasOwnGroup(pid int) bool {
	s, err := Stat(pid)
	return err != nil || s.Group == pid
}

func TestChildrenDieWithTheProgram(t *testing.T) {
	p := start(t, self(t, "parent"))
	var grandchild int
	if _, err := fmt.Fscan(p.Stdout(), &grandchild); err != nil {
		t.Fatal(err)
	}
	if _, err := Stat(grandchild); err != nil {
		t.Fatal(err)
	}
	proc, err := os.FindProcess(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := proc.Kill(); err != nil { // the program alone: its child is in another process group
		t.Fatal(err)
	}
	if !ends(grandchild) {
		t.Errorf("process %d outlived the program that started it", grandchild)
	}
}

func TestMissingProgram(t *testing.T) {
	_, err := Start(Spec{Path: "no-such-program-anywhere"})
	if !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("Start = %v, want exec.ErrNotFound", err)
	}
}

func TestStderrIsAppended(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	for _, word := range []string{"first", "second"} {
		p := start(t, Spec{Path: "sh", Args: []string{"-c", "echo " + word + " >&2; echo " + word}, Stderr: file})
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != "first\nfirst\nsecond\nsecond\n" {
		t.Errorf("log is %q, %v", got, err)
	}
}

// TestCappedStderr: the log ends with the number of bytes that it lacks, and the last line is known all the same.
func TestCappedStderr(t *testing.T) {
	for _, c := range []struct {
		most int64
		want string
	}{
		{100, strings.Repeat("x", 100) + "\n… 916 bytes more\n"},
		{1016, strings.Repeat("x", 1000) + "\nthe last line\n\n"},
	} {
		spec := self(t, "chatter")
		spec.MaxStderr = c.most
		p := start(t, spec)
		<-p.Done()
		text, err := os.ReadFile(spec.Stderr)
		if err != nil || string(text) != c.want {
			t.Errorf("at most %d bytes: %q, %v", c.most, text, err)
		}
		if line, status := p.LastLine(), p.Status(); line != "the last line" || status != "exit status 3" {
			t.Errorf("last line %q, status %q", line, status)
		}
	}
}

func TestParseStat(t *testing.T) {
	rest := " 1 5 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 7788 0 0"
	for _, c := range []struct {
		line string
		want Status
		bad  bool
	}{
		{line: "12 (redis-server) S" + rest, want: Status{State: 'S', Parent: 1, Group: 5, Started: 7788}},
		{line: "12 (a) b (c)) T" + rest, want: Status{State: 'T', Parent: 1, Group: 5, Started: 7788}},
		{line: "12 (killed) R" + strings.Replace(rest, "4194560", "4195588", 1),
			want: Status{State: 'R', Parent: 1, Group: 5, Started: 7788, exiting: true}},
		{line: "12 (short) S 1", bad: true},
		{line: "no brackets", bad: true},
		{line: "12 (x) S" + strings.Replace(rest, "7788", "x", 1), bad: true},
		{line: "", bad: true},
	} {
		got, err := parseStat([]byte(c.line))
		if (err != nil) != c.bad || got != c.want {
			t.Errorf("parseStat(%q) = %v, %v", c.line, got, err)
		}
	}
}

// TestIdentity: only the process with the same start time is killed; a zombie has exited.
func TestIdentity(t *testing.T) {
	p := start(t, Spec{Path: "sleep", Args: []string{"600"}})
	id, err := Identify(p.PID())
	if err != nil || !id.Alive() {
		t.Fatalf("%+v, %v, alive: %v", id, err, id.Alive())
	}
	reused := Identity{PID: id.PID, Started: id.Started - 1}
	if killed, err := reused.Kill(t.Context()); killed || err != nil || reused.Alive() || !id.Alive() {
		t.Errorf("another process with the number: %v, %v", killed, err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if killed, err := id.Kill(t.Context()); killed != want || err != nil {
			t.Errorf("killed %v, %v, want %v", killed, err, want)
		}
	}
	if killed, err := (Identity{}).Kill(t.Context()); killed || err != nil {
		t.Errorf("the zero identity: %v, %v", killed, err)
	}
}

// ends reports whether the process has exited within a deadline.
func ends(pid int) bool {
	// Polling: the exit of another program's child sends no event.
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(time.Millisecond) { //nolint:forbidigo // polling: there is no event
		if s, err := Stat(pid); err != nil || !s.Alive() {
			return true
		}
	}
	return false
}
