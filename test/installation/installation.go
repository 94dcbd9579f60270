// Package installation answers: how is the controller of manifests/ installed on a local
// cluster?
//
// As an administrator does: with a kustomization of manifests/kubernetes that names the
// image and the switches. The image is built and pushed without a container engine.
package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
)

const (
	// imageName is the image that the manifests name.
	imageName = "quay.io/openshift/origin-update-preflight"
	// pollInterval is the time between two readings of the records.
	pollInterval = 200 * time.Millisecond
)

// ConnectRegistry has pods read the images of the local registry, which a release names by
// an address that only this machine reaches: through a mirror.
func ConnectRegistry(ctx context.Context, c *cluster.Cluster) error {
	exposed, err := c.Expose(ctx, c.Registry)
	if err != nil {
		return err
	}
	return openshift.Mirror(ctx, c.Config, c.Registry, exposed)
}

// Overlay is a kustomization of manifests/kubernetes. All fields but Image are optional.
type Overlay struct {
	// Image is the pull spec of the controller, by digest.
	Image string
	// Args are further arguments of the controller.
	Args []string
	// Switches are names of directories in manifests/switches.
	Switches []string
}

// Write writes the kustomization to directory. Root is the root of the repository.
func (o Overlay) Write(root, directory string) error {
	manifests, err := relative(directory, filepath.Join(root, "manifests"))
	if err != nil {
		return err
	}
	name, digest, found := strings.Cut(o.Image, "@")
	if !found {
		return fmt.Errorf("the image %q of the controller has no digest", o.Image)
	}
	kustomization := map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"resources": []string{filepath.Join(manifests, "kubernetes")},
		"images":    []any{map[string]string{"name": imageName, "newName": name, "digest": digest}},
	}
	if len(o.Switches) > 0 {
		var components []string
		for _, each := range o.Switches {
			components = append(components, filepath.Join(manifests, "switches", each))
		}
		kustomization["components"] = components
	}
	if len(o.Args) > 0 {
		kustomization["patches"] = []any{o.patch()}
	}
	text, err := yaml.Marshal(kustomization)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, "kustomization.yaml"), text, 0o600)
}

// relative is the path of target from directory, since a kustomization takes no other.
func relative(directory, target string) (string, error) {
	from, err := filepath.Abs(directory)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(target)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// patch adds the arguments.
func (o Overlay) patch() map[string]any {
	var operations strings.Builder
	for _, arg := range o.Args {
		fmt.Fprintf(&operations, "- {op: add, path: /spec/template/spec/containers/0/args/-, value: %q}\n", arg)
	}
	return map[string]any{"target": map[string]string{"kind": "Deployment", "name": "update-preflight"}, "patch": operations.String()}
}

// AwaitRun returns the newest run of a version by a requester once it is complete. Without
// one, it returns the error of ctx.
func AwaitRun(ctx context.Context, c *cluster.Cluster, version string, requester record.Requester) (record.Record, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return record.Record{}, err
	}
	records := record.New(client)
	var newest record.Record
	var last error
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		var listed []record.Record
		listed, last = records.List(ctx)
		for _, each := range listed {
			matches := each.Target.Version == version && each.Requester == requester && each.Phase == record.Complete
			if matches && each.CompletionTime.After(newest.CompletionTime) {
				newest = each
			}
		}
		return newest.ID != "", nil
	})
	if err != nil {
		return record.Record{}, fmt.Errorf("no run of %s by %q is complete: %w", version, requester, errors.Join(err, last))
	}
	return newest, nil
}
