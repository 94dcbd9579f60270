package credential_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/openshift/update-preflight/runner/registry/credential"
)

// TestAttacksByCredentialFiles reads the pipe of a process substitution, one without a writer, and a file that does not exist.
func TestAttacksByCredentialFiles(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "auth.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	interrupted, interrupt := context.WithCancelCause(t.Context())
	signal := errors.New("terminated")
	interrupt(signal)
	if _, err := credential.ReadAuthFile(interrupted, pipe); !errors.Is(err, signal) {
		t.Errorf("a pipe without a writer: %v, want %v", err, signal)
	}
	written := make(chan error, 1)
	go func() {
		written <- os.WriteFile(pipe, []byte(`{"auths":{"quay.io":{"auth":"YTpi"}}}`), 0o600) // until it is read
	}()
	store, err := credential.ReadAuthFile(t.Context(), pipe)
	if err := errors.Join(err, <-written); err != nil {
		t.Fatal(err)
	}
	if _, found := store.Find("quay.io/a/b"); !found {
		t.Error("the pipe has a credential for quay.io")
	}
	if none, err := credential.ReadAuthFile(t.Context(), filepath.Join(t.TempDir(), "none")); err != nil || len(none.Helpers) > 0 {
		t.Errorf("a file that does not exist: %+v, %v; want no credentials", none, err)
	}
}
