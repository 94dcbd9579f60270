package release

import (
	"context"
	"os"
	"sync"

	"github.com/openshift/update-preflight/test/build"
)

// Binaries has compiled main packages of this repository, each compiled once.
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
	path, err := build.Compile(ctx, directory)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path) //nolint:gosec // the file is the one just written
	if err != nil {
		return nil, err
	}
	if b.built == nil {
		b.built = map[string][]byte{}
	}
	b.built[directory] = data
	return data, nil
}
