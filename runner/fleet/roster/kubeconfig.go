package roster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
)

// Contexts returns the contexts of a kubeconfig whose names match one of the patterns, by name: in a pattern, * matches
// any text and ? any character. load returns the configuration of a context. A pattern without matches results in an
// *input.Error.
func Contexts(config clientcmdapi.Config, patterns []string, load func(context string) (*rest.Config, error),
	connect Connect,
) ([]Member, error) {
	matching := map[string]bool{}
	all := slices.Sorted(maps.Keys(config.Contexts))
	for _, pattern := range patterns {
		expression := glob(pattern)
		before := len(matching)
		for _, name := range all {
			if expression.MatchString(name) {
				matching[name] = true
			}
		}
		if len(matching) == before && !slices.ContainsFunc(slices.Collect(maps.Keys(matching)), expression.MatchString) {
			return nil, input.Errorf("no context matches %q; the kubeconfig has %s", words.Line(pattern, maxQuoted), nameList(all))
		}
	}
	members := make([]Member, 0, len(matching))
	for _, name := range slices.Sorted(maps.Keys(matching)) {
		members = append(members, configured(fleet.Cluster{Name: name, Source: "context " + name},
			func() (*rest.Config, error) { return load(name) }, connect, "context", name))
	}
	return members, limit(len(members))
}

// maxQuoted bounds a text of the user in an error, in bytes.
const maxQuoted = 128

func nameList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return words.List(names, 20)
}

// glob is a pattern as an expression. Names of contexts have slashes, which * matches too.
func glob(pattern string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(pattern)
	return regexp.MustCompile("(?s)^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(quoted) + "$")
}

// configured is a member of a configuration that may be unusable.
func configured(of fleet.Cluster, load func() (*rest.Config, error), connect Connect, flags ...string) Member {
	config, err := load()
	var member Member
	if err != nil {
		member = failed(of, failure("KubeconfigInvalid", err))
	} else {
		member = direct(of, config, connect)
	}
	member.Flags = flags
	return member
}

// Kubeconfigs returns the clusters of the current contexts of kubeconfigs: of each file, and of each file in a
// directory whose name does not begin with a dot, by name. load returns the configuration of a file. A path that cannot
// be read, or a directory without a file, results in an *input.Error.
func Kubeconfigs(paths []string, load func(path string) (*rest.Config, error), connect Connect) ([]Member, error) {
	files, err := listed(paths, func(entry os.DirEntry) bool { return !entry.IsDir() })
	if err != nil {
		return nil, err
	}
	members := make([]Member, 0, len(files))
	for _, path := range files {
		of := fleet.Cluster{Name: nameOf(path), Source: "kubeconfig " + path}
		members = append(members, configured(of, func() (*rest.Config, error) { return load(path) }, connect, "kubeconfig", path))
	}
	return members, limit(len(members))
}

// listed returns the files in the paths, and the wanted entries of the directories, sorted.
func listed(paths []string, wanted func(os.DirEntry) bool) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, &input.Error{Err: err}
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, &input.Error{Err: err}
		}
		before := len(files)
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), ".") && wanted(entry) {
				files = append(files, filepath.Join(path, entry.Name()))
			}
		}
		if len(files) == before {
			return nil, input.Errorf("the directory %s contains none", words.Line(path, maxQuoted))
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// nameOf is the name of a file without its extensions.
func nameOf(path string) string {
	name := filepath.Base(path)
	for _, extension := range []string{".gz", ".xz", ".tgz", ".tar", ".zip", ".yaml", ".yml", ".json", ".kubeconfig"} {
		if short := strings.TrimSuffix(name, extension); short != "" {
			name = short
		}
	}
	return name
}

func limit(members int) error {
	if members > MaxMembers {
		return &input.Error{Err: fmt.Errorf("there are %d clusters, and at most %d are read: select fewer", members, MaxMembers)}
	}
	return nil
}

// Archives are the clusters of archives, by name: of each packed file, and of each directory and
// packed file in a directory. A file that is packed in a way which is not read is a member, too: its
// Open fails. Other files of a directory are in a notice. open reads the archive of a path.
func Archives(paths []string,
	open func(ctx context.Context, path string) (*cluster.Cluster, error),
) (members []Member, notices []string, err error) {
	var others []string
	files, err := listed(paths, func(entry os.DirEntry) bool {
		wanted := entry.IsDir() || packed(entry.Name())
		if !wanted {
			others = append(others, entry.Name())
		}
		return wanted
	})
	if err != nil {
		return nil, nil, err
	}
	if len(others) > 0 {
		notices = append(notices, fmt.Sprintf("%s skipped because their names are not names of archives: %s", words.Count(len(others), "file"),
			words.List(others, maxListed)))
	}
	members = make([]Member, 0, len(files))
	for _, path := range files {
		members = append(members, Member{
			Cluster: fleet.Cluster{Name: nameOf(path), Source: "archive " + path, Archived: true}, Archived: true, Flags: []string{"archive", path},
			content: sync.OnceValue(func() string { return contentOf(path) }),
			open: func(ctx context.Context) (Connection, error) {
				reached, err := open(ctx, path)
				if err != nil {
					return Connection{}, failure("ArchiveUnreadable", err)
				}
				return Connection{Cluster: reached}, nil
			},
		})
	}
	return members, notices, limit(len(members))
}

// packed reports whether a file has the name of an archive, also of one that is packed in a way which
// is not read.
func packed(name string) bool {
	for _, extension := range []string{
		".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".zip", ".tar.zst", ".tzst", ".tar.bz2", ".tbz", ".tbz2",
		".tar.lz4", ".7z", ".rar",
	} {
		if strings.HasSuffix(strings.ToLower(name), extension) {
			return true
		}
	}
	return false
}

// contentOf returns a digest of the paths, sizes and modification times of the files, which changes if another archive
// is stored at the same path. Reading all files would take as long as evaluating the cluster.
func contentOf(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	sum := sha256.New()
	_ = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			fmt.Fprintf(sum, "%q: %v\n", name, err)
			return nil // to open the archive reports it
		}
		info, err := entry.Info()
		if err != nil {
			fmt.Fprintf(sum, "%q: %v\n", name, err)
			return nil
		}
		fmt.Fprintf(sum, "%q %s %d %d\n", name, info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))
}

// clusterDeployment holds the fields of a ClusterDeployment that are read (hive.openshift.io/v1).
type clusterDeployment struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Installed       bool             `json:"installed"`
		PowerState      string           `json:"powerState"`
		ClusterPoolRef  *struct{}        `json:"clusterPoolRef"`
		ClusterMetadata *clusterMetadata `json:"clusterMetadata"`
	} `json:"spec"`
	Status struct {
		PowerState string `json:"powerState"`
	} `json:"status"`
}

type clusterMetadata struct {
	ClusterID                string `json:"clusterID"`
	AdminKubeconfigSecretRef struct {
		Name string `json:"name"`
	} `json:"adminKubeconfigSecretRef"`
}

// Hive are the clusters of the ClusterDeployments of a cluster, which are reached by their admin
// kubeconfigs, and notices about those that are left out: the clusters of ClusterPools, which are not
// updated but replaced. An *input.Error is about a cluster without Hive.
func Hive(ctx context.Context, hub *cluster.Cluster, connect Connect) (members []Member, notices []string, err error) {
	objects, err := listAll(ctx, hub, clusterDeployments())
	if err != nil {
		return nil, nil, err
	}
	var pooled []string
	for i := range objects {
		of, object := memberOf(&objects[i], "ClusterDeployment"), objectOf(hub, &objects[i])
		var deployment clusterDeployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &deployment); err != nil {
			members = append(members, failed(of, failure("ClusterDeploymentInvalid",
				fmt.Errorf("the ClusterDeployment cannot be decoded: %w", err))))
			continue
		}
		if deployment.Spec.ClusterPoolRef != nil {
			pooled = append(pooled, of.Name)
			continue
		}
		member := deployment.member(hub, of, connect)
		member.known = object
		members = append(members, member)
	}
	if len(pooled) > 0 {
		notices = append(notices, fmt.Sprintf("%s of ClusterPools skipped: %s", words.Count(len(pooled), "cluster"),
			words.List(pooled, maxListed)))
	}
	return members, notices, nil
}

// clusterDeployments is the resource of Hive.
func clusterDeployments() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "hive.openshift.io", Version: "v1", Resource: "clusterdeployments"}
}

// HiveNeeds are the permissions to list the clusters of Hive and to reach them.
func HiveNeeds() access.Needs {
	return access.Needs{Required: []access.Request{
		{Verb: "list", Group: clusterDeployments().Group, Resource: clusterDeployments().Resource},
		{Verb: "get", Resource: "secrets"},
	}}
}

// maxListed bounds the names in a notice.
const maxListed = 20

// stopped are the power states of a cluster that is stopped, stopping or starting: its ClusterOperators and
// certificates do not reflect a running cluster.
func stopped() []string {
	return []string{
		"Hibernating", "Stopping", "WaitingForMachinesToStop", "FailedToStop", "FailedToStopMachines", "StartingMachines",
		"FailedToStartMachines",
		"WaitingForMachines", "WaitingForNodes", "PausingForClusterOperatorsToSettle", "WaitingForClusterOperators",
	}
}

func (d *clusterDeployment) member(hub *cluster.Cluster, of fleet.Cluster, connect Connect) Member {
	switch {
	case d.DeletionTimestamp != nil:
		return Member{Cluster: of, State: fleet.NotInstalled, Message: "its ClusterDeployment is being deleted"}
	case !d.Spec.Installed:
		return Member{Cluster: of, State: fleet.NotInstalled, Message: "spec.installed of its ClusterDeployment is false"}
	case slices.Contains(stopped(), d.Status.PowerState):
		return Member{Cluster: of, State: fleet.Hibernating, Message: "status.powerState of its ClusterDeployment is " + d.Status.PowerState}
	case d.Spec.PowerState == "Hibernating":
		return Member{Cluster: of, State: fleet.Hibernating, Message: "spec.powerState of its ClusterDeployment is Hibernating"}
	case d.Spec.ClusterMetadata == nil || d.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name == "":
		return failed(of, failure("ClusterDeploymentInvalid", errors.New("its ClusterDeployment names no Secret with a kubeconfig")))
	}
	known := *d.Spec.ClusterMetadata
	of.ID = known.ClusterID
	namespace := d.Namespace
	secret := SecretRef{Namespace: namespace, Name: known.AdminKubeconfigSecretRef.Name}
	return Member{
		Cluster: of, Flags: []string{"kubeconfig", strings.ReplaceAll(of.Name, "/", "-") + ".kubeconfig"}, Secret: secret,
		open: func(ctx context.Context) (Connection, error) {
			return reachBySecret(ctx, hub, namespace, known, connect)
		},
	}
}

// reachBySecret connects to the cluster of an admin kubeconfig, which must be the one that Hive knows.
func reachBySecret(ctx context.Context, hub *cluster.Cluster, namespace string, known clusterMetadata,
	connect Connect,
) (Connection, error) {
	name := known.AdminKubeconfigSecretRef.Name
	secret, err := hub.Kubernetes.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Connection{}, secretFailure(namespace, name, err)
	}
	config, err := hosted.ParseKubeconfig(secret.Data["kubeconfig"])
	if err != nil {
		return Connection{}, &Failure{
			Err: fmt.Errorf("key kubeconfig of Secret %s/%s: %w", namespace, name, err), Reason: "KubeconfigInvalid",
			Remedy: "Correct the Secret, which the ClusterDeployment names as the one with the admin kubeconfig.",
		}
	}
	reached, err := observed(config, connect)
	if err != nil {
		return Connection{}, failure("KubeconfigInvalid", err)
	}
	version, err := reached.Cluster.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	if err != nil {
		return reached, fmt.Errorf("could not read ClusterVersion: %w", err)
	}
	if id := string(version.Spec.ClusterID); known.ClusterID != "" && !strings.EqualFold(id, known.ClusterID) {
		return Connection{}, failure("OtherCluster",
			fmt.Errorf("the kubeconfig of Secret %s/%s is for another cluster: Hive recorded the ID %s, but it has %q", namespace, name,
				known.ClusterID, id))
	}
	return reached, nil
}

// secretFailure is about the Secret with the kubeconfig of a cluster, which could not be read.
func secretFailure(namespace, name string, err error) error {
	err = fmt.Errorf("could not read Secret %s/%s with its kubeconfig: %w", namespace, name, err)
	switch {
	case apierrors.IsNotFound(err):
		return failure("KubeconfigMissing", err)
	case apierrors.IsForbidden(err):
		return failure("KubeconfigForbidden", err)
	}
	return err
}

// memberOf is the cluster of an object: its name with its namespace, unless they are equal.
func memberOf(object *unstructured.Unstructured, kind string) fleet.Cluster {
	name := object.GetNamespace() + "/" + object.GetName()
	of := fleet.Cluster{Name: name, Source: kind + " " + name, Labels: object.GetLabels()}
	if object.GetNamespace() == object.GetName() {
		of.Name = object.GetName()
	}
	return of
}

// objectOf differs for objects of one name in several clusters: it is the API server that has the object, and
// the UID.
func objectOf(of *cluster.Cluster, object *unstructured.Unstructured) string {
	return serverOf(of.Config()) + " " + string(object.GetUID())
}

// listAll lists the objects of all namespaces by namespace and name, at most MaxMembers.
func listAll(ctx context.Context, of *cluster.Cluster, resource schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	const page = 500
	var all []unstructured.Unstructured
	for next := ""; ; {
		listed, err := of.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: page, Continue: next})
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			return nil, input.Errorf("the cluster does not serve %s.%s: name another one with --kubeconfig or "+
				"--context", resource.Resource,
				resource.Group)
		case err != nil:
			return nil, fmt.Errorf("could not list %s.%s: %w", resource.Resource, resource.Group, err)
		}
		all = append(all, listed.Items...)
		if err := limit(len(all)); err != nil {
			return nil, err
		}
		if next = listed.GetContinue(); next == "" {
			break
		}
	}
	slices.SortFunc(all, func(a, b unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return all, nil
}
