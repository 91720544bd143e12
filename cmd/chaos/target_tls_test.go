package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// TestTargetTLS: gates encrypt and authenticate as an ACL user, whose password is in a file.
func TestTargetTLS(t *testing.T) {
	needRedis(t)
	dir := t.TempDir()
	ca, key := selfSigned(t, dir)
	passwords := filepath.Join(dir, "password")
	acl := filepath.Join(dir, "users.acl")
	rights := "user default off\nuser tester on >hunter2 ~*lockchaos:* &* -@all +@read +@write +@scripting +@pubsub " +
		"+@connection -@dangerous +role +time\n"
	for path, text := range map[string]string{passwords: "hunter2\n", acl: rights} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addr := locktest.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	server := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", "0", "--tls-port", port,
		"--tls-cert-file", ca, "--tls-key-file", key, "--tls-ca-cert-file", ca, "--tls-auth-clients", "no",
		"--aclfile", acl, "--save", "", "--dir", dir)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	awaitListener(t, addr)
	url := "rediss://tester@" + addr
	args := []string{"run", "--scenario", writeScenario(t, gentleScenario), "--seed", "1", "--out", dir, "--target", url,
		"--target-password-file", passwords}
	if code, _, stderr := chaos(args...); code != exitEnvironment || !strings.Contains(stderr, "certificate") {
		t.Errorf("an unknown certificate: %d %s", code, stderr)
	}
	code, stdout, stderr := chaos(append(args, "--target-ca", ca)...)
	if code == exitEnvironment || code == exitUsage || code == exitInternal || !strings.Contains(stdout, "grants") ||
		strings.Contains(stdout, " 0 grants") {
		t.Fatalf("%d\n%s%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, "--target-password-file "+passwords) {
		t.Errorf("the command that repeats the run lacks the file of the password:\n%s", stdout)
	}
	noSecret(t, filepath.Join(dir, "gentle"), stdout+stderr, "hunter2")
}

func awaitListener(t *testing.T, addr string) {
	t.Helper()
	locktest.Eventually(t, time.Minute, "a connection to "+addr, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// selfSigned writes a certificate for 127.0.0.1 that signs itself, and its key.
func selfSigned(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
