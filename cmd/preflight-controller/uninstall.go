package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/runner/trigger/published"
)

// uninstall removes the signals, the ClusterOperator and what is published for CVO, and writes
// a line to out for each object that it has deleted, also when others could not be.
func uninstall(ctx context.Context, reached *cluster.Cluster, out io.Writer) error {
	if err := guard.UninstallNeeds().And(hostedguard.UninstallNeeds()).And(published.RemoveNeeds()).Check(ctx, reached.Kubernetes.AuthorizationV1()); err != nil {
		return err
	}
	deleted, err := guard.Uninstall(ctx, reached.Dynamic)
	hosted, hostedErr := hostedguard.Uninstall(ctx, reached.Dynamic)
	removed, removeErr := published.Remove(ctx, reached.Kubernetes)
	deleted, err = slices.Concat(hosted, deleted, removed), errors.Join(hostedErr, err, removeErr)
	for _, object := range deleted {
		_, writeErr := fmt.Fprintf(out, "deleted %s %s\n", object.Kind, path.Join(object.Namespace, object.Name))
		err = errors.Join(err, writeErr)
	}
	return err
}
