// Package evidencesource answers: where do clusters state how their updates were?
//
// A [Source] is a directory of files, a ConfigMap of a cluster, or a hub of Open Cluster Management. [Source.Read]
// gives every text that it has to [evidence.Collect], which decides what counts: nothing is left out without a word.
package evidencesource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/evidence"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet/hub"
	"github.com/openshift/update-preflight/signature/localfile"
)

// The bounds of a directory: its entries, and the bytes of all files.
const (
	MaxFiles = 10_000
	MaxBytes = 64 << 20
)

const (
	onHub       = "hub"
	inConfigMap = "configmap/"
	suffix      = ".json"
)

// Source is where statements are. Its zero value is none.
type Source struct {
	directory string
	configMap types.NamespacedName
	hub       bool
}

// Parse reads a source: "hub", "configmap/NAMESPACE/NAME", or the path of a directory; "./hub" is a directory of that name.
func Parse(text string) (Source, error) {
	if text == "" {
		return Source{}, errors.New("it is empty: a source is a directory, configmap/NAMESPACE/NAME, or hub")
	}
	if text == onHub {
		return Source{hub: true}, nil
	}
	rest, ok := strings.CutPrefix(text, inConfigMap)
	if !ok {
		return Source{directory: text}, nil
	}
	namespace, name, _ := strings.Cut(rest, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return Source{}, fmt.Errorf("%q is no ConfigMap: write configmap/NAMESPACE/NAME", words.External(text))
	}
	return Source{configMap: types.NamespacedName{Namespace: namespace, Name: name}}, nil
}

// OnHub reports whether the statements are those of the clusters of a hub.
func (s Source) OnHub() bool { return s.hub }

// ConfigMap is the name of the ConfigMap; the zero value where it is none.
func (s Source) ConfigMap() types.NamespacedName { return s.configMap }

// OnCluster reports whether a cluster is read.
func (s Source) OnCluster() bool { return s.hub || s.configMap.Name != "" }

// Needs are the permissions to read the source.
func (s Source) Needs(query hub.Query) access.Needs {
	switch {
	case s.hub:
		return query.Needs()
	case s.configMap.Name != "":
		return ConfigMapNeeds(s.configMap)
	}
	return access.Needs{}
}

// ConfigMapNeeds are the permissions to read a ConfigMap with statements.
func ConfigMapNeeds(name types.NamespacedName) access.Needs {
	return access.Needs{Required: []access.Request{{Verb: "get", Resource: "configmaps", Namespace: name.Namespace, Name: name.Name}}}
}

// Read reads all texts of the source, sorted by name. The cluster, which a directory does not need, has the ConfigMap,
// or is the hub, of which the query selects clusters. What cannot be read, or has too much, is an error; what one entry
// lacks is a problem of its item.
func (s Source) Read(ctx context.Context, reached *cluster.Cluster, query hub.Query) ([]evidence.Item, error) {
	switch {
	case s.hub:
		return hub.Statements(ctx, reached, query)
	case s.configMap.Name != "":
		return s.readConfigMap(ctx, reached)
	}
	return readDirectory(ctx, s.directory)
}

func (s Source) readConfigMap(ctx context.Context, reached *cluster.Cluster) ([]evidence.Item, error) {
	object, err := reached.Kubernetes.CoreV1().ConfigMaps(s.configMap.Namespace).Get(ctx, s.configMap.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, input.Errorf("the ConfigMap %s with statements about updates does not exist in the namespace %s", s.configMap.Name, s.configMap.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("could not read the ConfigMap %s with statements about updates: %w", s.configMap, err)
	}
	var items []evidence.Item
	for _, key := range slices.Sorted(maps.Keys(object.Data)) {
		items = append(items, evidence.Item{Name: "ConfigMap " + s.configMap.String() + ", key " + key, Text: []byte(object.Data[key])})
	}
	for _, key := range slices.Sorted(maps.Keys(object.BinaryData)) {
		items = append(items, evidence.Item{Name: "ConfigMap " + s.configMap.String() + ", key " + key, Problem: "it is binary data, which no statement is"})
	}
	return items, nil
}

func readDirectory(ctx context.Context, path string) ([]evidence.Item, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, input.Errorf("the directory with statements about updates cannot be read: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written
	entries, err := entriesOf(root)
	if err != nil {
		return nil, input.Errorf("the directory %s with statements about updates: %w", path, err)
	}
	items, total := make([]evidence.Item, 0, len(entries)), 0
	for _, entry := range entries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		item := readFile(root, entry)
		if total += len(item.Text); total > MaxBytes {
			return nil, input.Errorf("the directory %s with statements about updates has more than %d MiB", path, MaxBytes>>20)
		}
		items = append(items, item)
	}
	return items, nil
}

// entriesOf are the names in the directory, without those that a kubelet makes to mount a ConfigMap (..data).
func entriesOf(root *os.Root) ([]string, error) {
	directory, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer directory.Close() //nolint:errcheck // nothing was written
	listed, err := directory.ReadDir(MaxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(listed) > MaxFiles {
		return nil, fmt.Errorf("it has more than %d files", MaxFiles)
	}
	var names []string
	for _, entry := range listed {
		if !strings.HasPrefix(entry.Name(), "..") {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func readFile(root *os.Root, name string) evidence.Item {
	item := evidence.Item{Name: name}
	if !strings.HasSuffix(name, suffix) {
		item.Problem = "its name does not end in " + suffix
		return item
	}
	file, err := localfile.OpenRegularIn(root, name)
	if err != nil {
		item.Problem = "it cannot be opened: " + words.External(cause(err))
		return item
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if item.Text, err = io.ReadAll(io.LimitReader(file, evidence.MaxText+1)); err != nil {
		item.Text, item.Problem = nil, "it cannot be read: "+words.External(cause(err))
	}
	return item
}

// cause is an error without the path, which the name of the item has.
func cause(err error) string {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return of.Err.Error()
	}
	return err.Error()
}
