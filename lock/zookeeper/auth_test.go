package zookeeper

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/internal/testkit/sessiontest"
	"github.com/lockchaos/lockchaos/lock"
)

// TestAuth: locks of a client with an identity are for clients with that identity alone, also after a reconnection.
func TestAuth(t *testing.T) {
	b := startBackend(t)
	proxied := sessiontest.Behind(t, b)
	own := Options{Root: "/private", Auth: &Auth{Scheme: "digest", Credentials: []byte("app:secret")}}
	c := open(t, proxied.Proxy.Addr, own)
	h := sessiontest.Acquire(t, c.Mutex("orders").Acquire, "a")
	session, err := c.sessions.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	acls, _, err := session.conn.GetACL("/private/orders")
	if err != nil || len(acls) != 1 || acls[0].Scheme != "digest" || acls[0].Perms != zk.PermAll {
		t.Errorf("rights %+v (%v), want all for one digest", acls, err)
	}
	other := own
	other.Auth = &Auth{Scheme: "digest", Credentials: []byte("other:secret")}
	for name, o := range map[string]Options{"no identity": {Root: own.Root}, "another identity": other} {
		_, err := open(t, b.addr, o).Mutex("orders").TryAcquire(t.Context(), "b")
		if !errors.Is(err, zk.ErrNoAuth) || !lock.Definite(err) {
			t.Errorf("%s: %v, want a definite ErrNoAuth", name, err)
		}
	}
	if _, err := open(t, b.addr, own).Mutex("orders").TryAcquire(t.Context(), "c"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("the same identity: %v, want ErrHeld", err)
	}
	proxied.Proxy.CutConnections()
	sessiontest.Release(t, h)
	sessiontest.Release(t, sessiontest.Acquire(t, c.Multi("bills", "orders").Acquire, "a"))
}

// TestUnknownScheme: an identity that the servers refuse is an error of the acquire, which does not wait.
func TestUnknownScheme(t *testing.T) {
	b := startBackend(t)
	c := open(t, b.addr, Options{Auth: &Auth{Scheme: "none", Credentials: []byte("app")}})
	if _, err := c.Mutex("orders").Acquire(t.Context(), "a"); !errors.Is(err, zk.ErrAuthFailed) || !lock.Definite(err) {
		t.Errorf("%v, want a definite ErrAuthFailed", err)
	}
}

// TestSharedRoot: clients of two identities have locks below one root, which a client of another identity has created;
// a client needs no right to create a root that exists.
func TestSharedRoot(t *testing.T) {
	b := startBackend(t)
	for _, user := range []string{"app", "other"} {
		c := open(t, b.addr, Options{Root: "/a/b", Auth: &Auth{Scheme: "digest", Credentials: []byte(user + ":secret")}})
		m := c.Mutex("of-" + user)
		sessiontest.Release(t, sessiontest.Acquire(t, m.Acquire, user))
		sessiontest.Release(t, sessiontest.Acquire(t, m.Acquire, user)) // with the mark of the first
		if err := c.Close(t.Context()); err != nil {                    // which ends with the session
			t.Fatal(err)
		}
		if user == "app" {
			if _, err := b.admin.SetACL("/", zk.WorldACL(zk.PermRead), -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := open(t, b.addr, Options{Root: "/new"})
	if _, err := c.Mutex("orders").Acquire(t.Context(), "a"); !errors.Is(err, zk.ErrNoAuth) || !lock.Definite(err) {
		t.Errorf("a root that may not be created: %v, want a definite ErrNoAuth", err)
	}
}
