package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// startRegistry starts the registry and pushes the pause image, which every pod
// needs.
func (p *plan) startRegistry(ctx context.Context) error {
	start := time.Now()
	blobs := filepath.Join(p.cluster.Dir, "registry")
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		return err
	}
	err := p.spawn("registry", "crane", "registry", "serve", "--address", p.cluster.Registry, "--disk", blobs)
	if err != nil {
		return err
	}
	if err := p.await(ctx, "registry", get(http.DefaultClient, "http://"+p.cluster.Registry+"/v2/")); err != nil {
		return err
	}
	if err := p.pushPause(ctx); err != nil {
		return fmt.Errorf("push the pause image: %w", err)
	}
	p.done("registry", start)
	return nil
}

func (p *plan) pauseImage() string { return p.cluster.Registry + "/pause:1" }

// pushPause pushes an image that has only the pause program.
func (p *plan) pushPause(ctx context.Context) error {
	program, err := os.ReadFile(filepath.Join(p.bin, "pause"))
	if err != nil {
		return err
	}
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	if err := archive.WriteHeader(&tar.Header{Name: "pause", Mode: 0o755, Size: int64(len(program))}); err != nil {
		return err
	}
	if _, err := archive.Write(program); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	})
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	image, err = mutate.Config(image, v1.Config{Entrypoint: []string{"/pause"}})
	if err != nil {
		return err
	}
	reference, err := name.ParseReference(p.pauseImage())
	if err != nil {
		return err
	}
	return remote.Write(reference, image, remote.WithContext(ctx))
}
