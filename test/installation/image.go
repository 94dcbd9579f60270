package installation

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/openshift/update-preflight/test/release"
)

// Program is the path of the controller in its image, which is also that of the Dockerfile.
const Program = "/usr/bin/preflight-controller"

// PushImage compiles the controller statically, and pushes it to a registry, host:port, as
// an image from scratch. It returns the pull spec, by digest.
func PushImage(ctx context.Context, binaries *release.Binaries, registry string) (string, error) {
	program, err := binaries.Build(ctx, "cmd/preflight-controller")
	if err != nil {
		return "", err
	}
	return release.BuildImage(ctx, registry, "update-preflight", release.Image{
		Files:  map[string]release.File{Program: {Mode: 0o755, Data: program}},
		Config: v1.Config{User: "65532", Entrypoint: []string{Program}},
	})
}
