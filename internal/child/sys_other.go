//go:build !linux

package child

import (
	"errors"
	"net/netip"
	"syscall"
)

func attributes(Spec) *syscall.SysProcAttr { return nil }

func (p *Process) reap() {
	state, _ := p.cmd.Process.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.ended = state, true
}

func (p *Process) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return ErrExited
	}
	return p.cmd.Process.Kill()
}

func (p *Process) stop() error   { return errors.ErrUnsupported }
func (p *Process) resume() error { return errors.ErrUnsupported }

// HasSocket needs /proc.
func (p *Process) HasSocket(netip.AddrPort, netip.AddrPort) bool { return false }

// SocketVariable needs /proc.
func SocketVariable(netip.AddrPort, netip.AddrPort, string) (string, bool) { return "", false }

// SocketUser needs /proc.
func SocketUser(netip.AddrPort, netip.AddrPort) (int, bool) { return 0, false }
