package target

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestGatesAreForTheirUser: a gate has authenticated, so it must not serve other users of the machine.
func TestGatesAreForTheirUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: needs root, to start a program as another user")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "served\n")
			conn.Close()
		}
	}()
	target := &Target{topology: cluster.Topology{Kind: cluster.Single}}
	target.nodes = []*server{target.newServer("n1", listener.Addr().String(), false)}
	if err := target.OpenGates(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(target.nodes[0].gate.Close(), target.nodes[0].own.Close()) }()
	for user, want := range map[uint32]string{0: "served", 65534: ""} {
		host, port, _ := net.SplitHostPort(target.nodes[0].gate.Addr())
		read := exec.Command("bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+port+" && cat <&3")
		read.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		read.Dir = "/"
		text, _ := read.Output() // an error if the connection was reset
		if got := strings.TrimSpace(string(text)); got != want {
			t.Errorf("user %d: %q, want %q", user, got, want)
		}
	}
}
