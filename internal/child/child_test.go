package child

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain plays the child: with CHILD_ROLE set, this binary is the program under test.
func TestMain(m *testing.M) {
	switch os.Getenv("CHILD_ROLE") {
	case "":
		os.Exit(m.Run())
	case "echo":
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println("heard", in.Text())
		}
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
	if err := p.Stop(); !errors.Is(err, ErrGone) {
		t.Errorf("Stop after the end = %v, want ErrGone", err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill after the end = %v", err)
	}
}

func TestStopStandsStill(t *testing.T) {
	p := start(t, self(t, "echo"))
	out := bufio.NewReader(p.Stdout())
	fmt.Fprintln(p.Stdin(), "one")
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if state, _, err := Stat(p.PID()); err != nil || state != 'T' {
		t.Fatalf("state %c, %v, want T", state, err)
	}
	fmt.Fprintln(p.Stdin(), "two")
	got := make(chan string, 1)
	go func() {
		line, _ := out.ReadString('\n')
		got <- line
	}()
	select {
	case line := <-got:
		t.Fatalf("a stopped process answered %q", line)
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
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if !ends(grandchild) {
		t.Errorf("process %d, started by the child, lives on", grandchild)
	}
}

func TestChildrenDieWithTheProgram(t *testing.T) {
	p := start(t, self(t, "parent"))
	var grandchild int
	if _, err := fmt.Fscan(p.Stdout(), &grandchild); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Stat(grandchild); err != nil {
		t.Fatal(err)
	}
	proc, err := os.FindProcess(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := proc.Kill(); err != nil { // the program alone, not its group: the child sits in another
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

func TestParseStat(t *testing.T) {
	rest := " 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 7788 0 0"
	for _, c := range []struct {
		line  string
		state byte
		start uint64
		bad   bool
	}{
		{line: "12 (redis-server) S" + rest, state: 'S', start: 7788},
		{line: "12 (a) b (c)) T" + rest, state: 'T', start: 7788},
		{line: "12 (short) S 1", bad: true},
		{line: "no brackets", bad: true},
		{line: "12 (x) S" + strings.Replace(rest, "7788", "x", 1), bad: true},
		{line: "", bad: true},
	} {
		state, start, err := parseStat([]byte(c.line))
		if (err != nil) != c.bad || state != c.state || start != c.start {
			t.Errorf("parseStat(%q) = %c, %d, %v", c.line, state, start, err)
		}
	}
}

// ends says whether the process is gone, or dead and only waiting for its parent, within a deadline.
func ends(pid int) bool {
	// not a wait for a fixed time but polling, with a deadline: somebody else's child sends no event
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(time.Millisecond) {
		if state, _, err := Stat(pid); err != nil || state == 'Z' {
			return true
		}
	}
	return false
}
