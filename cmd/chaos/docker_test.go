package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster/docker"
)

// needDocker skips the test where there is no engine with the image.
func needDocker(t *testing.T) {
	t.Helper()
	if _, err := docker.Version(t.Context()); err != nil {
		t.Skip("NOT RUN: needs a Docker engine: ", err)
	}
	if out, err := exec.Command("docker", "image", "inspect", docker.Image()).CombinedOutput(); err != nil {
		t.Skipf("NOT RUN: needs image %s at the engine (make docker-image, %s=%s): %v %s",
			docker.Image(), docker.ImageVariable, docker.LocalImage, err, out)
	}
}

const unpluggedScenario = `
name: unplugged
summary: the only server is disconnected for a while, then paused for a while
topology: {kind: single}
lock: reentrant
workload: {clients: 3, hold: 50ms, lease: 5s}
faults:
  - {when: acquired, fault: unplug, target: n1, for: 1s}
  - {after: 1500ms, when: acquired, fault: pause-node, target: n1, for: 1s}
duration: 3s
expect: safe
`

// TestDockerScenarios: the verdicts of backend process for a failover and a
// partitioned holder; a network partition; the cgroup freezer.
func TestDockerScenarios(t *testing.T) {
	needDocker(t)
	for _, scenario := range []string{
		"failover", "redlock-partitioned-holder", writeScenario(t, unpluggedScenario),
	} {
		t.Run(filepath.Base(scenario), func(t *testing.T) {
			_, dir := realRun(t, exitSafe, "", "--scenario", scenario, "--backend", "docker", "--seed", "1", "--expect")
			for _, name := range []string{"report.html", "logs/n1.log", "logs/client-0.log"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
			if text := readFile(t, filepath.Join(dir, "run.json")); !strings.Contains(text, docker.Image()) {
				t.Errorf("run.json does not name the image %s:\n%s", docker.Image(), text)
			}
			nothingContained(t, os.TempDir())
		})
	}
}

// nothingContained fails if a container or network exists whose run had its ledger in
// that temporary directory; other tests may have theirs.
func nothingContained(t *testing.T, temp string) {
	t.Helper()
	for _, list := range [][]string{{"ps", "-a"}, {"network", "ls"}} {
		out, err := exec.Command("docker", append(list, "--format", `{{.Label "lockchaos.ledger"}}`)...).CombinedOutput()
		if err != nil || strings.Contains("\n"+string(out), "\n"+temp+"/lockchaos-") {
			t.Errorf("docker %s: %v, left behind: %s", strings.Join(list, " "), err, out)
		}
	}
}

// runningDocker starts a run on backend docker as a child process and calls do when
// its clients run.
func runningDocker(t *testing.T, out string, env []string, do func(*exec.Cmd)) (cmd *exec.Cmd, temp, stderr string) {
	t.Helper()
	cmd, temp = program(t, "run", "--scenario", writeScenario(t, quickScenario), "--backend", "docker", "--set",
		"faults=[]", "--set", "expect=null", "--duration", "2m", "--out", out)
	cmd.Env = append(cmd.Env, env...)
	stderr = when(t, cmd, 0, "running the workload", func() { do(cmd) })
	return cmd, temp, stderr
}

// TestDockerInterrupted: Ctrl-C removes every container before the report is written.
func TestDockerInterrupted(t *testing.T) {
	needDocker(t)
	out := t.TempDir()
	cmd, temp, output := runningDocker(t, out, nil, func(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGINT) })
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exited with %v, want exit code %d\n%s", cmd.ProcessState, exitInterrupted, output)
	}
	if _, err := os.Stat(filepath.Join(out, "latest", "report.html")); err != nil {
		t.Error(err)
	}
	nothingContained(t, temp)
	nothingIn(t, temp)
}

// TestDockerKilledAndCleaned: chaos clean removes the leftovers of kill -9.
func TestDockerKilledAndCleaned(t *testing.T) {
	needDocker(t)
	_, temp, output := runningDocker(t, t.TempDir(), nil, func(cmd *exec.Cmd) { _ = cmd.Process.Kill() })
	clean, _ := program(t, "clean")
	clean.Env = append(clean.Env, "TMPDIR="+temp)
	out, err := clean.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "removed 2 Docker objects") {
		t.Errorf("clean: %v\n%s%s", err, out, output)
	}
	nothingContained(t, temp)
	nothingIn(t, temp)
}

// TestDockerNextRunSweeps: the next run removes the leftovers of kill -9.
func TestDockerNextRunSweeps(t *testing.T) {
	needDocker(t)
	_, temp, _ := runningDocker(t, t.TempDir(), nil, func(cmd *exec.Cmd) { _ = cmd.Process.Kill() })
	next, _ := program(t, "run", "--scenario", writeScenario(t, quickScenario), "--backend", "docker",
		"--out", t.TempDir(), "--set", "faults=[]", "--set", "expect=null", "--duration", "500ms")
	next.Env = append(next.Env, "TMPDIR="+temp)
	output, _ := next.CombinedOutput()
	if code := next.ProcessState.ExitCode(); code != exitSafe && code != exitInconclusive { // too short to decide
		t.Errorf("exit code %d\n%s", code, output)
	}
	nothingContained(t, temp)
	nothingIn(t, temp)
}

// TestDockerOrphans: chaos clean removes containers and directories whose ledger was deleted.
func TestDockerOrphans(t *testing.T) {
	needDocker(t)
	_, temp, _ := runningDocker(t, t.TempDir(), nil, func(cmd *exec.Cmd) { _ = cmd.Process.Kill() })
	for i, want := range []string{`^without a ledger: removed (.+, )?container `, "^nothing was left behind"} {
		if err := os.RemoveAll(filepath.Join(temp, fmt.Sprintf("lockchaos-%d", os.Getuid()))); err != nil {
			t.Fatal(err)
		}
		clean, _ := program(t, "clean")
		clean.Env = append(clean.Env, "TMPDIR="+temp)
		if output, err := clean.CombinedOutput(); err != nil || !regexp.MustCompile(want).Match(output) {
			t.Errorf("clean %d: %v\n%s", i, err, output)
		}
	}
	nothingContained(t, temp)
}

// TestDockerEngineDies: a run whose engine is killed ends soon, inconclusive and
// with a report; chaos clean removes the rest once the engine is back.
func TestDockerEngineDies(t *testing.T) {
	engine := ownEngine(t)
	out := t.TempDir()
	cmd, temp, output := runningDocker(t, out, engine.env(), func(*exec.Cmd) { engine.kill() })
	if code := cmd.ProcessState.ExitCode(); code != exitEnvironment {
		t.Errorf("exited with %v, want exit code %d\n%s", cmd.ProcessState, exitEnvironment, output)
	}
	if !strings.Contains(output, "lost the Docker engine") {
		t.Errorf("it does not say why:\n%s", output)
	}
	dir := filepath.Join(out, "latest")
	if text := readFile(t, filepath.Join(dir, "verdict.json")); !strings.Contains(text, `"inconclusive"`) {
		t.Errorf("the verdict:\n%s", text)
	}
	if text := readFile(t, filepath.Join(dir, "run.json")); !strings.Contains(text, `"state": "broken"`) {
		t.Errorf("the manifest:\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "report.html")); err != nil {
		t.Error(err)
	}
	if known := processesExited(t, temp); known < 4 { // a server, three clients
		t.Errorf("the ledger knows %d processes", known)
	}
	clean := func() string {
		c, _ := program(t, "clean")
		c.Env = append(append(c.Env, engine.env()...), "TMPDIR="+temp)
		output, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("clean: %v\n%s", err, output)
		}
		return string(output)
	}
	if output := clean(); !strings.Contains(output, "failed: no Docker engine at") {
		t.Errorf("clean without the engine: %s", output)
	}
	engine.start(t)
	if output := clean(); !strings.Contains(output, "Docker objects") || strings.Contains(output, "failed:") {
		t.Errorf("clean with the engine back: %s", output)
	}
	nothingIn(t, temp)
}

// processesExited fails if a process in the ledger of a run has not exited, and returns
// how many the ledger has.
func processesExited(t *testing.T, temp string) (known int) {
	t.Helper()
	ledgers, err := filepath.Glob(filepath.Join(temp, "lockchaos-*", "*.jsonl"))
	if err != nil || len(ledgers) != 1 {
		t.Fatalf("ledgers %v, %v", ledgers, err)
	}
	for _, m := range regexp.MustCompile(`"pid":(\d+)`).FindAllStringSubmatch(readFile(t, ledgers[0]), -1) {
		known++
		pid, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if s, err := child.Stat(pid); err == nil && s.Alive() { // its parent may not have waited for it yet
			name, _ := os.ReadFile("/proc/" + m[1] + "/comm")
			t.Errorf("process %d (%s) has not exited", pid, bytes.TrimSpace(name))
		}
	}
	return known
}

// bridge is the default network of every engine.
const bridge = "/sys/class/net/docker0"

// dockerd is an engine for one test, which does not touch the firewall. (It shares the
// bridge with other engines: with --bridge=none it would remove it.)
type dockerd struct {
	dir string
	cmd *exec.Cmd
}

// ownEngine starts an engine with the image, and stops it when the test ends.
func ownEngine(t *testing.T) *dockerd {
	t.Helper()
	needDocker(t)
	if _, err := exec.LookPath("dockerd"); err != nil || os.Getuid() != 0 {
		t.Skip("NOT RUN: needs root and a dockerd of its own to kill (Debian, Ubuntu: apt-get install docker.io): ", err)
	}
	dir, err := os.MkdirTemp("", "dockerd-") // not t.TempDir: its name is too long for containerd's sockets
	if err != nil {
		t.Fatal(err)
	}
	d := &dockerd{dir: dir}
	_, noBridge := os.Stat(bridge)
	t.Cleanup(func() {
		d.stop()
		d.sweep(t)
		if noBridge != nil {
			_ = exec.Command("ip", "link", "del", filepath.Base(bridge)).Run()
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	d.start(t)
	save := exec.Command("docker", "save", docker.Image())
	load := exec.Command("docker", "load")
	load.Env = append(os.Environ(), d.env()...)
	if load.Stdin, err = save.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := save.Start(); err != nil {
		t.Fatal(err)
	}
	output, err := load.CombinedOutput()
	if err := save.Wait(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatalf("docker load: %v\n%s", err, output)
	}
	return d
}

func (d *dockerd) env() []string { return []string{"DOCKER_HOST=unix://" + d.dir + "/d.sock"} }

// start returns when the engine replies.
func (d *dockerd) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command("dockerd", "--data-root", d.dir+"/data", "--exec-root", d.dir+"/exec", "--pidfile", d.dir+"/pid",
		"-H", "unix://"+d.dir+"/d.sock", "--iptables=false", "--ip-masq=false")
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		request := exec.CommandContext(ctx, "docker", "version")
		request.Env = append(os.Environ(), d.env()...)
		if request.Run() == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			text, _ := os.ReadFile(log.Name())
			t.Skipf("NOT RUN: dockerd does not start here:\n%s", text)
		}
	}
}

// kill kills the engine and its containerd, for whose pid the next engine would
// otherwise wait. The containers keep running.
func (d *dockerd) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	file := filepath.Join(d.dir, "exec", "containerd", "containerd.pid")
	if text, err := os.ReadFile(file); err == nil {
		if pid, err := strconv.Atoi(string(text)); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = os.Remove(file)
}

// sweep kills and unmounts the leftovers of a killed engine in d.dir.
func (d *dockerd) sweep(t *testing.T) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Error(err)
	}
	for _, path := range lines {
		line, _ := os.ReadFile(path) // it may have exited
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if bytes.Contains(line, []byte(d.dir+"/")) && pid > 1 && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	mounts := strings.Split(readFile(t, "/proc/mounts"), "\n")
	slices.Reverse(mounts) // the last mount first
	for _, line := range mounts {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], d.dir+"/") {
			_ = exec.Command("umount", "-l", f[1]).Run()
		}
	}
}

// stop shuts the engine down with everything that it started.
func (d *dockerd) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
}
