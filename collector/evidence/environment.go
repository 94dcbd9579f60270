package evidence

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// Field is a property of the environment of a cluster.
type Field string

// The fields.
const (
	Platform      Field = "platform"
	Topology      Field = "topology"
	Architectures Field = "architectures"
	NetworkType   Field = "network-type"
	LoadBalancer  Field = "load-balancer"
)

// Fields are all fields, in the order in which they are listed.
func Fields() []Field {
	return []Field{Platform, Topology, Architectures, NetworkType, LoadBalancer}
}

// DefaultLike are the fields in which clusters are equal that are like each other.
func DefaultLike() []Field { return []Field{Platform, Topology, NetworkType, LoadBalancer} }

// Of is the value of the field; empty where it is unknown or not stated.
func (f Field) Of(of afterupdate.Environment) string {
	switch f {
	case Platform:
		return of.Platform
	case Topology:
		return of.Topology
	case Architectures:
		return strings.Join(of.Architectures, ",")
	case NetworkType:
		return of.NetworkType
	case LoadBalancer:
		return of.LoadBalancer
	}
	return ""
}

func (f Field) text() string { return strings.ReplaceAll(string(f), "-", " ") }

// ReadsEnvironment are the requests of [EnvironmentOf].
func ReadsEnvironment() []access.Request {
	return append(check.ReadsTopology(), check.List(configv1.GroupName, "networks"), check.List("", "nodes"))
}

// EnvironmentOf is the environment of a cluster of OpenShift.
func EnvironmentOf(ctx context.Context, cluster *snapshot.Cluster) (afterupdate.Environment, error) {
	infrastructure, err := cluster.Infrastructure(ctx)
	if err != nil {
		return afterupdate.Environment{}, fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
	}
	networks, err := snapshot.List[configv1.Network](ctx, cluster, configv1.GroupVersion.WithResource("networks"))
	if err != nil {
		return afterupdate.Environment{}, fmt.Errorf("could not list the Networks: %w", err)
	}
	nodes, err := cluster.Nodes(ctx)
	if err != nil {
		return afterupdate.Environment{}, fmt.Errorf("could not list the nodes: %w", err)
	}
	made := afterupdate.Environment{Topology: string(infrastructure.Status.ControlPlaneTopology)}
	made.Platform = string(infrastructure.Status.Platform) //nolint:staticcheck // clusters of old releases have no platformStatus
	if status := infrastructure.Status.PlatformStatus; status != nil {
		made.Platform, made.LoadBalancer = string(status.Type), loadBalancer(*status)
	}
	for i := range networks {
		if networks[i].Name == "cluster" {
			made.NetworkType = networks[i].Status.NetworkType
		}
	}
	architectures := map[string]bool{}
	for i := range nodes {
		if text := nodes[i].Status.NodeInfo.Architecture; text != "" {
			architectures[text] = true
		}
	}
	made.Architectures = slices.Sorted(maps.Keys(architectures))
	return made, nil
}

// loadBalancer is status.platformStatus.PLATFORM.loadBalancer.type (openshift/api config/v1): the platforms that
// have it are those of clusters with a load balancer of the installer or of the user.
func loadBalancer(status configv1.PlatformStatus) string {
	of := reflect.ValueOf(status)
	for _, platform := range of.Fields() {
		if platform.Kind() != reflect.Pointer || platform.IsNil() || platform.Elem().Kind() != reflect.Struct {
			continue
		}
		field := platform.Elem().FieldByName("LoadBalancer")
		if !field.IsValid() || field.Kind() != reflect.Pointer || field.IsNil() {
			continue
		}
		if kind := field.Elem().FieldByName("Type"); kind.IsValid() && kind.Kind() == reflect.String {
			return kind.String()
		}
	}
	return ""
}
