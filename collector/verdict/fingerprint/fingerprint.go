// Package fingerprint answers: has the cluster changed since a verdict?
//
// A preflight evaluates the state of the cluster at one time; the update may start from a different state.
package fingerprint

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// MaxAge bounds the validity of a verdict. It is the threshold that openshift/enhancements#363 suggests.
const MaxAge = 24 * time.Hour

// Fingerprint is the state that a verdict depends on: the state of each object by its
// kind and name, as in "Node worker-3".
type Fingerprint map[string]string

// unknown is the prefix of the keys of kinds that could not be read; their state is the error.
const unknown = "? "

// Read reads the fingerprint of the cluster. A kind that cannot be read is unknown in
// it, and never compares as unchanged.
func Read(ctx context.Context, cluster *snapshot.Cluster) Fingerprint {
	f := Fingerprint{}
	f.note("ClusterVersion", f.clusterVersion(ctx, cluster))
	f.note("ClusterOperator", f.operators(ctx, cluster))
	f.note("Node", f.nodes(ctx, cluster))
	f.note("CustomResourceDefinition", f.definitions(ctx, cluster))
	return f
}

func (f Fingerprint) note(kind string, err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		f[unknown+kind] = err.Error()
	}
}

func (f Fingerprint) clusterVersion(ctx context.Context, cluster *snapshot.Cluster) error {
	found, err := cluster.ClusterVersion(ctx)
	if err != nil {
		return err
	}
	f["ClusterVersion "+found.Name] = found.Status.Desired.Version + " " + found.Status.Desired.Image
	return nil
}

func (f Fingerprint) operators(ctx context.Context, cluster *snapshot.Cluster) error {
	operators, err := cluster.ClusterOperators(ctx)
	for _, operator := range operators {
		if operator.Name == ownsignal.ClusterOperator {
			continue // it is created and deleted by verdicts
		}
		f["ClusterOperator "+operator.Name] = versionOf(operator)
	}
	return err
}

func versionOf(operator configv1.ClusterOperator) string {
	for _, version := range operator.Status.Versions {
		if version.Name == "operator" {
			return version.Version
		}
	}
	return ""
}

func (f Fingerprint) nodes(ctx context.Context, cluster *snapshot.Cluster) error {
	nodes, err := cluster.Nodes(ctx)
	for _, node := range nodes {
		f["Node "+node.Name] = node.Status.NodeInfo.KubeletVersion
	}
	return err
}

func (f Fingerprint) definitions(ctx context.Context, cluster *snapshot.Cluster) error {
	definitions, err := cluster.CustomResourceDefinitions(ctx)
	for _, definition := range definitions {
		if definition.Name == ownsignal.Definition {
			continue // to install the controller does not end a verdict
		}
		f["CustomResourceDefinition "+definition.Name] = string(definition.UID) + " generation " + strconv.FormatInt(definition.Generation, 10)
	}
	return err
}

// Changes returns the differences to the current fingerprint, sorted; none means that the verdict still holds. A
// kind that could not be read, then or now, is a difference.
func (f Fingerprint) Changes(now Fingerprint) []string {
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(union(f, now))) {
		kind, _, _ := strings.Cut(strings.TrimPrefix(key, unknown), " ")
		failure := cmp.Or(now[unknown+kind], f[unknown+kind])
		before, existed := f[key]
		after, exists := now[key]
		switch {
		case key == unknown+kind:
			changes = append(changes, fmt.Sprintf(unread+"%s has changed: %s", kind, failure))
		case failure != "":
		case !existed:
			changes = append(changes, key+isNew)
		case !exists:
			changes = append(changes, key+wasDeleted)
		case before != after:
			changes = append(changes, key+hasChanged)
		}
	}
	return changes
}

// IsChange reports whether a text is one of Changes about an object that has certainly
// changed, and not one about a kind that could not be read.
func IsChange(text string) bool {
	return !strings.HasPrefix(text, unread) &&
		(strings.HasSuffix(text, isNew) || strings.HasSuffix(text, wasDeleted) || strings.HasSuffix(text, hasChanged))
}

// The beginnings and ends of the texts of changes.
const (
	unread     = "unknown whether a "
	isNew      = " is new"
	wasDeleted = " was deleted"
	hasChanged = " has changed"
)

func union(a, b Fingerprint) Fingerprint {
	all := maps.Clone(a)
	if all == nil {
		all = Fingerprint{}
	}
	maps.Copy(all, b)
	return all
}
