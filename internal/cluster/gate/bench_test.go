package gate

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkRoundTrip compares a question and its answer (40 bytes each) with
// and without a gate in between. The difference is what a gate costs.
func BenchmarkRoundTrip(b *testing.B) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) // user space, as a server is
		}
	}()
	question := make([]byte, 40)
	both(b, echo.Addr().String(), question, len(question))
}

// BenchmarkRedisPing is the same with a real server.
func BenchmarkRedisPing(b *testing.B) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		b.Skip("redis-server is not installed: ", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := l.Addr().String()
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(path, "--port", fmt.Sprint(port), "--save", "", "--dir", b.TempDir())
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	// not a wait for a fixed time but polling, with a deadline: a server that starts sends no event
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			break
		}
		if time.Since(began) > 5*time.Second {
			b.Fatal(err)
		}
	}
	both(b, addr, []byte("PING 0123456789012345678901234567890\r\n"), len("$31\r\n0123456789012345678901234567890\r\n"))
}

func both(b *testing.B, addr string, question []byte, answer int) {
	b.Run("direct", func(b *testing.B) { pingPong(b, addr, question, answer) })
	b.Run("gate", func(b *testing.B) {
		g, err := Open(Config{Listen: "127.0.0.1:0", Target: addr})
		if err != nil {
			b.Fatal(err)
		}
		defer g.Close()
		pingPong(b, g.Addr(), question, answer)
	})
}

func pingPong(b *testing.B, addr string, question []byte, answer int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, answer)
	for b.Loop() {
		if _, err := c.Write(question); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
}
