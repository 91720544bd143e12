package gate

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkRoundTrip compares a request and its reply (40 bytes each) with and without
// a gate. The difference is the cost of a gate.
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
			go io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) // in user space, as in a server
		}
	}()
	request := make([]byte, 40)
	both(b, echo.Addr().String(), request, len(request))
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
	// Polling with a deadline: a server that starts sends no event.
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) { //nolint:forbidigo // polling: there is no event
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

func both(b *testing.B, addr string, request []byte, reply int) {
	b.Run("direct", func(b *testing.B) { pingPong(b, addr, request, reply) })
	b.Run("gate", func(b *testing.B) {
		g, err := Open(Config{Listen: "127.0.0.1:0", Target: addr})
		if err != nil {
			b.Fatal(err)
		}
		defer g.Close()
		pingPong(b, g.Addr(), request, reply)
	})
}

func pingPong(b *testing.B, addr string, request []byte, reply int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, reply)
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
}
