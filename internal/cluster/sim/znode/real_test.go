package znode_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/jute"
	"github.com/lockchaos/lockchaos/internal/testkit/zookeepertest"
)

const (
	ioTimeout    = time.Minute // for one reply
	longSession  = time.Hour   // no session expires during the test
	passwordSize = 16          // bytes
)

// startServer starts a standalone server with an empty disk, and returns its address.
func startServer(t *testing.T) string {
	t.Helper()
	return zookeepertest.Start(t, zookeepertest.Options{Tick: time.Second, MaxSession: longSession})
}

// realSession is a session with the real server.
type realSession struct {
	conn     net.Conn
	in       *bufio.Reader
	id       int64
	password []byte
}

// connect begins the session, or continues it over another connection.
func (s *realSession) connect(ctx context.Context, addr string) (timeout int32, err error) {
	if s.conn, err = new(net.Dialer).DialContext(ctx, "tcp", addr); err != nil {
		return 0, err
	}
	s.in = bufio.NewReader(s.conn)
	if s.password == nil {
		s.password = make([]byte, passwordSize)
	}
	var m jute.Message
	m.AppendInt(0) // version of the protocol
	m.AppendLong(0)
	m.AppendInt(int32(longSession.Milliseconds()))
	m.AppendLong(s.id)
	m.AppendBytes(s.password)
	m.AppendBool(false) // not read-only
	if err := s.send(m); err != nil {
		return 0, err
	}
	if m, err = s.receive(); err != nil {
		return 0, err
	}
	m.Int() // version of the protocol
	timeout, s.id = m.Int(), m.Long()
	s.password = m.Bytes()
	return timeout, nil
}

// send sends messages at once.
func (s *realSession) send(messages ...jute.Message) error {
	var frames []byte
	for _, m := range messages {
		frames = append(frames, m.Frame()...)
	}
	_ = s.conn.SetDeadline(time.Now().Add(ioTimeout))
	_, err := s.conn.Write(frames)
	return err
}

func (s *realSession) receive() (jute.Message, error) {
	var size [4]byte
	if _, err := io.ReadFull(s.in, size[:]); err != nil {
		return nil, err
	}
	m := make(jute.Message, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(s.in, m)
	return m, err
}

// until receives all messages up to the reply to that request.
func (s *realSession) until(xid int32) (all []jute.Message, err error) {
	for {
		m, err := s.receive()
		if err != nil {
			return all, err
		}
		all = append(all, m)
		if head := m; head.Int() == xid {
			return all, nil
		}
	}
}
