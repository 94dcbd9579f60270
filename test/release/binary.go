package release

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

const modulePath = "github.com/openshift/update-preflight"

// Binaries compiles Go main packages of this repository statically, each once.
// The zero value is ready to use, by several goroutines at a time.
type Binaries struct {
	mu    sync.Mutex
	built map[string][]byte
}

// Build compiles the main package in directory, which is relative to the root
// of the repository (examples/ingress), and returns the executable for linux
// on this machine's architecture. The package may be in a module of its own.
func (b *Binaries) Build(ctx context.Context, directory string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if data, ok := b.built[directory]; ok {
		return data, nil
	}
	data, err := compile(ctx, directory)
	if err != nil {
		return nil, fmt.Errorf("compile %q: %w", directory, err)
	}
	if b.built == nil {
		b.built = map[string][]byte{}
	}
	b.built[directory] = data
	return data, nil
}

func compile(ctx context.Context, directory string) (_ []byte, err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return nil, fmt.Errorf("find the root of the repository: %w", err)
	}
	scratch, err := os.MkdirTemp("", "preflight-binary-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if removed := os.RemoveAll(scratch); err == nil {
			err = removed
		}
	}()
	target := filepath.Join(scratch, "binary")
	//nolint:gosec // the arguments come from our own tests
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", target, ".")
	build.Dir = filepath.Join(strings.TrimSpace(string(root)), directory)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, output)
	}
	return os.ReadFile(target) //nolint:gosec // the file is the one just written
}
