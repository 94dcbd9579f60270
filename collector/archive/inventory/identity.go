package inventory

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/archive/objects"
	"github.com/openshift/update-preflight/collector/gap"
)

// CollectionFile is the name of the file in the root of a tree that has a [Collection].
const CollectionFile = layout.CollectionFile

// Collection is the record that "oc preflight collect" adds to the objects of an archive.
type Collection struct {
	// Time is when the last object was read, by the cluster's clock.
	Time time.Time `json:"time"`
	// Version is the response to /version.
	Version version.Info `json:"version"`
	// Complete are the resources of which every object is in the archive, and Unserved the ones that the API server
	// did not serve: "pods", "poddisruptionbudgets.policy". Objects counts the objects of each complete resource.
	Complete []string       `json:"complete,omitempty"`
	Objects  map[string]int `json:"objects,omitempty"`
	Unserved []string       `json:"unserved,omitempty"`
	// Nonexistent are objects that the API server did not have, as [Resource.Object] has them.
	Nonexistent []string `json:"nonexistent,omitempty"`
	// Missing are objects that could not be read, with the cause, such as a permission.
	Missing []gap.Gap `json:"missing,omitempty"`
	// Queries has the data of the responses to /api/v1/query, by PromQL.
	Queries map[string]json.RawMessage `json:"queries,omitempty"`
	// Metrics of the API server that checks read, in Prometheus' format.
	Metrics string `json:"metrics,omitempty"`
	// Redacted is true where names of the cluster were replaced.
	Redacted bool `json:"redacted,omitempty"`
}

func (r Resource) String() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

// Object names an object of the resource: "configmaps openshift-config/admin-acks".
func (r Resource) Object(namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return r.String() + " " + name
}

func clusterVersions() Resource  { return Resource{"config.openshift.io", "clusterversions"} }
func clusterOperators() Resource { return Resource{"config.openshift.io", "clusteroperators"} }

func machineConfigPools() Resource {
	return Resource{"machineconfiguration.openshift.io", "machineconfigpools"}
}

func definitions() Resource { return Resource{"apiextensions.k8s.io", "customresourcedefinitions"} }

// clusterID of the ClusterVersion in the tree; empty for none.
func (t *tree) clusterID() string {
	id := ""
	files := slices.Clone(t.places[clusterVersions()])
	if t.root.Kind == layout.Lists {
		for _, found := range t.places {
			files = append(files, found...)
		}
	}
	for _, found := range files {
		_, err := found.objects(func(object []byte) error {
			var fields struct {
				Kind string `json:"kind"`
				Spec struct {
					ClusterID string `json:"clusterID"`
				} `json:"spec"`
			}
			if err := json.Unmarshal(object, &fields); err != nil {
				return err
			}
			if id == "" && (fields.Kind == "ClusterVersion" || t.root.Kind == layout.Insights) {
				id = fields.Spec.ClusterID
			}
			return nil
		})
		if err == nil && id != "" {
			return id
		}
	}
	return id
}

// unreadVersion is why the ClusterVersion of the tree cannot be read; empty where it has none, or can be read.
func (t *tree) unreadVersion() string {
	files := t.places[clusterVersions()]
	if unnamed := (Resource{Name: clusterVersions().Name}); t.root.Kind == layout.Lists {
		files = slices.Concat(files, t.places[unnamed])
	}
	for _, found := range files {
		place := found.place
		if t.root.Kind == layout.Lists { // whose objects say what they are
			place = layout.Place{}
		}
		if _, _, err := readEntries(&file{place: place, packed: found.packed, size: found.size, cause: found.cause}, ""); err != nil {
			return fmt.Sprintf("%s cannot be read: %v", found.path, err)
		}
	}
	for _, each := range t.lost {
		if of := clusterVersions(); !each.extent.Namespaced && each.extent.Holds(of.Group, of.Name) {
			return each.cause
		}
	}
	return ""
}

// describe finds the kind, the collection and the newest time of the trees of a cluster.
func describe(trees []*tree, leftOut *omissions) (About, Collection) {
	main := trees[0]
	about, index := About{Kind: string(main.root.Kind), Root: main.title}, Collection{}
	switch {
	case strings.HasPrefix(main.text("version"), "openshift/must-gather"):
		about.Kind = "must-gather"
	case main.files[".git/HEAD"] != nil:
		about.Kind = "resourcewatch"
	}
	for _, tree := range trees {
		text := tree.text(CollectionFile)
		if text == "" {
			continue
		}
		if err := decodeExactly([]byte(text), &index); err != nil {
			leftOut.add(tree.title+"/"+CollectionFile, err.Error())
			index = Collection{}
			continue
		}
		about.Kind, about.Time = "collection", index.Time.UTC()
	}
	for _, tree := range trees {
		for _, each := range tree.times() {
			if each.After(about.Time) {
				about.Time = each.UTC()
			}
		}
	}
	for _, tree := range trees {
		if about.Time.IsZero() {
			about.Time = tree.newest()
		}
	}
	return about, index
}

// decodeExactly decodes JSON of an object whose fields are all in lower case, and refuses a key twice and one that is not
// in lower case: encoding/json ignores the case and takes the last, so that it would replace what a program has
// stated.
func decodeExactly(text []byte, into any) error {
	if !json.Valid(text) {
		return json.Unmarshal(text, into)
	}
	if err := objects.RefuseDuplicates(text, "status_reports"); err != nil {
		return err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return err
	}
	for key := range keys {
		if key != strings.ToLower(key) {
			return fmt.Errorf("the key %q is not written as its field", key)
		}
	}
	return json.Unmarshal(text, into)
}

// text is the content of a file; empty where it does not exist or cannot be read.
func (t *tree) text(name string) string {
	text, _ := t.read(name)
	return text
}

// read is the content of a file, or why it cannot be read; both are empty where it does not exist.
func (t *tree) read(name string) (content, cause string) {
	found := t.files[name]
	if found == nil {
		return "", ""
	}
	text, err := found.text()
	if err != nil {
		return "", err.Error()
	}
	return string(text), ""
}

// timeFormat is the format of time.Time.String, without the monotonic clock.
const timeFormat = "2006-01-02 15:04:05.999999999 -0700 MST"

// times are those in the file to which each process of "oc adm inspect" appends when it starts and when it ends.
func (t *tree) times() []time.Time {
	var times []time.Time
	lines := bufio.NewScanner(strings.NewReader(t.text("timestamp")))
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), " m=")
		if each, err := time.Parse(timeFormat, text); err == nil {
			times = append(times, each)
		}
	}
	return times
}

// ended reports whether all processes that wrote the tree have ended: what they were to gather is there.
func (t *tree) ended() bool {
	times := t.times()
	return len(times) > 0 && len(times)%2 == 0
}

// past matches fields with times that are in the past when an object is read.
var past = regexp.MustCompile(
	`"?(?:lastHeartbeatTime|lastTransitionTime|lastUpdateTime|creationTimestamp|completionTime|time)"?: ?"?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)`)

// maxPast is the length of what it matches, in bytes.
const maxPast = 64

// newest is the newest time of the objects; zero where none has one. Objects that change often are
// read first, and all others only where these have none, such as in lists whose files are not named
// by their resource.
func (t *tree) newest() time.Time {
	var often []*file
	for _, key := range []Resource{clusterVersions(), clusterOperators(), {"", "nodes"}, {"", "pods"}} {
		often = append(often, t.places[key]...)
	}
	if newest := newestOf(often); !newest.IsZero() {
		return newest
	}
	var all []*file
	for _, found := range t.places {
		all = append(all, found...)
	}
	return newestOf(all)
}

func newestOf(files []*file) time.Time {
	var newest time.Time
	for _, found := range files {
		var before []byte // the end of the piece of a line before this one
		_ = found.lines(func(line []byte, begins bool) bool {
			if !begins {
				newest = later(newest, append(before, line[:min(len(line), maxPast)]...))
			}
			newest = later(newest, line)
			before = append(before[:0], line[max(len(line)-maxPast, 0):]...)
			return true
		}) // what cannot be read has no time
	}
	return newest.UTC()
}

func later(newest time.Time, text []byte) time.Time {
	if !bytes.Contains(text, []byte("ime")) { // all fields have it
		return newest
	}
	for _, match := range past.FindAllSubmatch(text, -1) {
		if each, err := time.Parse(time.RFC3339, string(match[1])); err == nil && each.After(newest) {
			newest = each
		}
	}
	return newest
}
