package after_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/archive/gathering"
	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/archive/writing"
	"github.com/openshift/update-preflight/collector/baseline/sample"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/test/after"
)

// recording is an archive in the layout of "oc adm inspect" whose objects are changed as time passes.
type recording struct {
	// now is the time of the archive, which is that of its newest object.
	now     time.Time
	objects map[after.Ref]*unstructured.Unstructured
	// lists are the files with a list of objects, the others have one object or none. A file of none is kept as it is.
	lists map[string]map[string]any
	files map[string][]after.Ref
	other map[string][]byte
	// root is the directory of the tree in the archive.
	root string
	// made counts what was made, for names.
	made int
}

// apiGroups are the groups whose kinds are named without them in an after.Ref.
func apiGroups() []string {
	return []string{
		"", "admissionregistration.k8s.io", "apiregistration.k8s.io", "apps", "autoscaling", "batch", "certificates.k8s.io",
		"config.openshift.io", "coordination.k8s.io",
		"discovery.k8s.io", "machine.openshift.io", "machineconfiguration.openshift.io", "operators.coreos.com", "route.openshift.io",
		"storage.k8s.io",
	}
}

func refOf(object *unstructured.Unstructured) after.Ref {
	kind := object.GroupVersionKind()
	ref := after.Ref{Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
	if !slices.Contains(apiGroups(), kind.Group) {
		ref.Kind += "." + kind.Group
	}
	return ref
}

// readRecording reads the archive in a directory.
func readRecording(tb testing.TB, dir string) *recording {
	tb.Helper()
	opened, err := archive.Open(tb.Context(), dir)
	if err != nil {
		tb.Fatal(err)
	}
	r := &recording{
		now: opened.Now().Truncate(time.Second), objects: map[after.Ref]*unstructured.Unstructured{},
		lists: map[string]map[string]any{}, files: map[string][]after.Ref{}, other: map[string][]byte{},
	}
	var names []string
	source := os.DirFS(dir)
	if err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		names = append(names, name)
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
	roots := layout.Roots(names)
	if len(roots) != 1 || roots[0].Kind != layout.Inspect {
		tb.Fatalf("%s has the trees %v, want one", dir, roots)
	}
	r.root = roots[0].Dir
	for _, name := range names {
		text, err := fs.ReadFile(source, name)
		if err != nil {
			tb.Fatal(err)
		}
		if !r.read(roots[0], name, text) {
			r.other[name] = text
		}
	}
	return r
}

// read reads a file of objects; false for another one, also for that of a definition, which does not change.
func (r *recording) read(root layout.Root, name string, text []byte) bool {
	below, ok := root.Below(name)
	place, isPlace := root.Place(below)
	if !ok || !isPlace || place.Resource == "customresourcedefinitions" {
		return false
	}
	var content map[string]any
	converted, err := yaml.YAMLToJSON(text)
	if err != nil || utiljson.Unmarshal(converted, &content) != nil || content == nil {
		return false
	}
	kind, _ := content["kind"].(string)
	items, _ := content["items"].([]any) // none where there is no object
	isList := strings.HasSuffix(kind, "List")
	if !isList {
		items = []any{content}
	}
	var refs []after.Ref
	for _, item := range items {
		object, ok := item.(map[string]any)
		if !ok || object["kind"] == nil {
			return false
		}
		found := (&unstructured.Unstructured{Object: object}).DeepCopy()
		refs = append(refs, refOf(found))
		if known := r.objects[refOf(found)]; known == nil || len(known.GetResourceVersion()) <= len(found.GetResourceVersion()) &&
			known.GetResourceVersion() < found.GetResourceVersion() {
			r.objects[refOf(found)] = found
		}
	}
	if isList {
		delete(content, "items")
		r.lists[name] = content
	}
	r.files[name] = refs
	return true
}

// collect is a recording of a cluster at noon, as "oc preflight collect" writes it.
func collect(tb testing.TB, w *after.World, noon time.Time) *recording {
	tb.Helper()
	connected, err := cluster.ConnectAt(w.Server(tb).Config(), "test", noon)
	if err != nil {
		tb.Fatal(err)
	}
	dir := filepath.Join(tb.TempDir(), "collected")
	into, err := writing.Create(dir, noon)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := gathering.Gather(tb.Context(), connected, gathering.Options{
		Reads:      sample.Reads(),
		Monitoring: monitoring.New(w.Monitoring(tb), monitoring.DefaultTimeout), Step: func(string) {},
	}, into); err != nil {
		tb.Fatal(err)
	}
	if _, err := into.Commit(); err != nil {
		tb.Fatal(err)
	}
	made := readRecording(tb, dir)
	made.now = noon
	return made
}

// clone is an independent copy.
func (r *recording) clone() *recording {
	next := &recording{
		now: r.now, objects: map[after.Ref]*unstructured.Unstructured{}, lists: r.lists, files: map[string][]after.Ref{},
		other: maps.Clone(r.other), root: r.root, made: r.made,
	}
	for ref, object := range r.objects {
		next.objects[ref] = object.DeepCopy()
	}
	next.lists = maps.Clone(r.lists)
	for name, refs := range r.files {
		next.files[name] = slices.Clone(refs)
	}
	return next
}

// at is a time before that of the recording, as objects state it.
func (r *recording) at(before time.Duration) string { return r.now.Add(-before).Format(time.RFC3339) }

// has reports whether an object is there.
func (r *recording) has(ref after.Ref) bool { return r.objects[ref] != nil }

// all are the objects of a kind, sorted.
func (r *recording) all(kind string) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for ref, object := range r.objects {
		if ref.Kind == kind {
			all = append(all, object)
		}
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return all
}

// in are the objects of a kind in a namespace whose names begin so, sorted.
func (r *recording) in(kind, namespace, prefix string) []*unstructured.Unstructured {
	return slices.DeleteFunc(r.all(kind), func(each *unstructured.Unstructured) bool {
		return each.GetNamespace() != namespace || !strings.HasPrefix(each.GetName(), prefix)
	})
}

// put sets one field of an object, by its path.
func (r *recording) put(object *unstructured.Unstructured, path string, value any) {
	if number, ok := value.(int); ok {
		value = int64(number)
	}
	if err := unstructured.SetNestedField(object.Object, value, strings.Split(path, ".")...); err != nil {
		panic(err)
	}
}

// get is an object that has to be there.
func (r *recording) get(kind, namespace, name string) *unstructured.Unstructured {
	ref := after.Ref{Kind: kind, Namespace: namespace, Name: name}
	if !r.has(ref) {
		panic(fmt.Sprintf("there is no %v", ref))
	}
	return r.objects[ref]
}

// set creates or replaces an object, JSON with its apiVersion and kind.
func (r *recording) set(content string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(content), &object.Object); err != nil {
		panic(fmt.Sprintf("%v: %s", err, content))
	}
	r.add(object)
	return object
}

func (r *recording) add(object *unstructured.Unstructured) {
	r.made++
	if object.GetUID() == "" {
		r.put(object, "metadata.uid", fmt.Sprintf("00000000-0000-4000-8002-%012d", r.made))
	}
	if object.GetResourceVersion() == "" {
		object.SetResourceVersion(fmt.Sprint(900000 + r.made))
	}
	if stamp := object.GetCreationTimestamp(); stamp.IsZero() {
		r.put(object, "metadata.creationTimestamp", r.at(30*24*time.Hour))
	}
	ref := refOf(object)
	_, exists := r.objects[ref]
	r.objects[ref] = object
	if !exists {
		name := r.fileOf(object)
		r.files[name] = append(r.files[name], ref)
	}
}

// fileOf is the file in which a new object is: the list of its kind, where there is one.
func (r *recording) fileOf(object *unstructured.Unstructured) string {
	group := object.GroupVersionKind().Group
	place := layout.Place{Group: group, Resource: resourceOf(object), Namespace: object.GetNamespace()}
	list := path.Join(r.root, place.Path())
	if r.lists[list] != nil {
		return list
	}
	if everywhere := path.Join(r.root, layout.Place{Group: group, Resource: place.Resource}.Path()); r.lists[everywhere] != nil {
		return everywhere
	}
	place.Name = object.GetName()
	return path.Join(r.root, place.Path())
}

func resourceOf(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind()
	guessed, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind})
	return guessed.Resource
}

// delete deletes an object.
func (r *recording) delete(object *unstructured.Unstructured) {
	ref := refOf(object)
	if !r.has(ref) {
		panic(fmt.Sprintf("there is no %v", ref))
	}
	delete(r.objects, ref)
	for name, refs := range r.files {
		r.files[name] = slices.DeleteFunc(refs, func(each after.Ref) bool { return each == ref })
		if len(r.files[name]) == 0 && r.lists[name] == nil {
			delete(r.files, name)
		}
	}
}

// gather adds the namespaces of another recording, as if these had been gathered as well.
func (r *recording) gather(from *recording, namespaces ...string) {
	for _, namespace := range namespaces {
		for of := range strings.FieldsSeq("pods services persistentvolumeclaims deployments.apps statefulsets.apps daemonsets.apps " +
			"endpointslices.discovery.k8s.io routes.route.openshift.io") {
			resource, group, _ := strings.Cut(of, ".")
			r.listed(group, resource, namespace)
		}
		for ref, object := range from.objects {
			if ref.Namespace == namespace || ref.Kind == "Namespace" && ref.Name == namespace {
				r.add(object.DeepCopy())
			}
		}
	}
}

// listed adds an empty list, as that of a resource of which there is no object.
func (r *recording) listed(group, resource, namespace string) {
	name := path.Join(r.root, layout.Place{Group: group, Resource: resource, Namespace: namespace}.Path())
	r.lists[name] = map[string]any{
		"apiVersion": path.Join(group, "v1"), "kind": "List",
		"metadata": map[string]any{"resourceVersion": "48211"},
	}
	r.files[name] = []after.Ref{}
}

// later has a time pass.
func (r *recording) later(passed time.Duration) *recording {
	next := r.clone()
	next.now = r.now.Add(passed)
	return next
}

// write writes the archive into a file, a tar.
func (r *recording) write(tb testing.TB, file string) {
	tb.Helper()
	into, err := os.Create(file)
	if err != nil {
		tb.Fatal(err)
	}
	packed := tar.NewWriter(into)
	add := func(name string, text []byte) {
		if err := packed.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: r.now}); err != nil {
			tb.Fatal(err)
		}
		if _, err := packed.Write(text); err != nil {
			tb.Fatal(err)
		}
	}
	for name, text := range r.other {
		add(name, r.dated(tb, name, text))
	}
	for name, refs := range r.files {
		var content any
		if list, isList := r.lists[name]; isList {
			items := []any{}
			for _, ref := range refs {
				items = append(items, r.objects[ref].Object)
			}
			whole := maps.Clone(list)
			whole["items"], content = items, whole
		} else {
			content = r.objects[refs[0]].Object
		}
		text, err := json.Marshal(content)
		if err != nil {
			tb.Fatal(err)
		}
		add(name, text)
	}
	if err := errors.Join(packed.Close(), into.Close()); err != nil {
		tb.Fatal(err)
	}
}

// dated is a file of no objects, with the time of the recording where it states one.
func (r *recording) dated(tb testing.TB, name string, text []byte) []byte {
	tb.Helper()
	switch path.Base(name) {
	case "timestamp":
		const format = "2006-01-02 15:04:05.999999999 -0700 MST m=+0.5\n"
		return []byte(r.now.Add(-2*time.Minute).Format(format) + r.now.Format(format))
	case inventory.CollectionFile:
		var collected inventory.Collection
		if err := json.Unmarshal(text, &collected); err != nil {
			tb.Fatal(err)
		}
		collected.Time = r.now
		for resource := range collected.Objects {
			if resource != "customresourcedefinitions.apiextensions.k8s.io" { // which are no objects of the recording
				collected.Objects[resource] = 0
			}
		}
		for ref, object := range r.objects {
			resource := inventory.Resource{Group: object.GroupVersionKind().Group, Name: resourceOf(object)}.String()
			if _, counted := collected.Objects[resource]; counted && ref.Name != "" {
				collected.Objects[resource]++
			}
		}
		made, err := json.Marshal(collected)
		if err != nil {
			tb.Fatal(err)
		}
		return made
	}
	return text
}

// differs are the kinds of which an object is in one recording only, or differs between the two; "Alert" for alerts.
func (r *recording) differs(from *recording) []string {
	kinds := map[string]bool{}
	for ref, object := range r.objects {
		if known := from.objects[ref]; known == nil || !reflect.DeepEqual(known.Object, object.Object) {
			kinds[ref.Kind] = true
		}
	}
	for ref := range from.objects {
		if !r.has(ref) {
			kinds[ref.Kind] = true
		}
	}
	for name, text := range r.other {
		if strings.Contains(name, "monitoring/") && string(from.other[name]) != string(text) {
			kinds["Alert"] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// fire adds an alert that has been in a state since then: "pending" or "firing".
func (r *recording) fire(name, namespace, state string, since time.Duration) {
	fired := map[string]any{
		"labels":      map[string]string{"alertname": name, "namespace": namespace, "severity": "warning"},
		"annotations": map[string]string{"summary": name}, "state": state, "activeAt": r.at(since), "value": "1",
	}
	r.alerts(func(data map[string]any) {
		if alerts, flat := data["alerts"].([]any); flat {
			data["alerts"] = append(alerts, fired)
			return
		}
		groups, _ := data["groups"].([]any)
		data["groups"] = append(groups, map[string]any{"name": name, "rules": []any{map[string]any{"name": name, "alerts": []any{fired}}}})
	})
}

// alerts changes the data of the file of alerts.
func (r *recording) alerts(change func(data map[string]any)) {
	for _, name := range []string{"monitoring/prometheus/rules.json", "monitoring/alerts.json"} {
		file := path.Join(r.root, name)
		var content map[string]any
		if json.Unmarshal(r.other[file], &content) != nil {
			continue
		}
		data, ok := content["data"].(map[string]any)
		if !ok {
			continue
		}
		change(data)
		text, err := json.Marshal(content)
		if err != nil {
			panic(err)
		}
		r.other[file] = text
		return
	}
	panic("the recording has no alerts")
}
