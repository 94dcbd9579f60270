// Package inventory answers: which objects of a cluster does an archive have, and which are missing?
//
// [Open] reads archives of one cluster. [Inventory.Table] returns the objects of a resource, and [Table.Missing]
// reports which of them were not gathered: in a namespace that was gathered, a list without objects means that
// there are none, and a missing list means that nothing is known. [Inventory.Unserved] reports which resources the
// cluster did not serve at all.
package inventory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/archive/packaging"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// maxPacked bounds what is kept of all files, in bytes: they are kept compressed.
	maxPacked = 512 << 20
	// maxLeftOut bounds the files that are listed as left out, and maxNamed those in an error.
	maxLeftOut, maxNamed = 100, 5
)

// About is the identity of an archive.
type About struct {
	// Kind is the type of the archive, such as "must-gather".
	Kind string
	// Root is the path of the cluster's objects.
	Root string
	// ClusterID is spec.clusterID of the ClusterVersion.
	ClusterID string
	// Time is the newest time of the archive, in UTC.
	Time time.Time
	// LeftOut are files that could not be read, with the cause, at most 100; LeftOutMore counts the others.
	LeftOut     []string
	LeftOutMore int
}

// Inventory is the state of one cluster. Its methods may be called concurrently.
type Inventory struct {
	about About
	trees []*tree
	index Collection
	// leftOut grows when files turn out to be unreadable.
	leftOut omissions

	mutex sync.Mutex
	// tables are those that were needed so far.
	tables map[part]*Table
	// lists are the tables of the files of lists, before they are complete.
	lists func() tables
	// relations are the relations of the ClusterOperators, which inspection gathered.
	relations func() relations
	// references are how its objects name others.
	references func() []reference
	// served are the resources of the aggregated discovery; empty where that is not known.
	served func() map[Resource]bool
}

// Resource is a resource of any version.
type Resource struct{ Group, Name string }

type tree struct {
	root  layout.Root
	title string
	// files are by their path below the root, and places by resource, in the order of the archive.
	files  map[string]*file
	places map[Resource][]*file
	// lost are the objects that are missing with directories, and hidden has the causes by the paths
	// of the directories below the root.
	lost   []lost
	hidden map[string]string
	// extra is true for a tree of which only resources are read that no other tree has.
	extra bool
}

// Open reads the archives of one cluster. If a path contains several clusters, or none, the error lists the ones
// that were found.
func Open(ctx context.Context, paths ...string) (*Inventory, error) {
	i := &Inventory{tables: map[part]*Table{}}
	trees, err := loadAll(ctx, paths, &i.leftOut)
	if err != nil {
		return nil, err
	}
	id, trees, err := choose(trees, len(paths), &i.leftOut)
	if left := i.leftOut.all(); err != nil && len(left) > 0 {
		return nil, fmt.Errorf("%w; not read: %s", err, words.Clauses(left, maxNamed))
	}
	if err != nil {
		return nil, err
	}
	i.hold(id, trees)
	return i, nil
}

func loadAll(ctx context.Context, paths []string, leftOut *omissions) ([]*tree, error) {
	var trees []*tree
	kept := 0
	for _, path := range paths {
		found, err := load(ctx, path, &kept, leftOut)
		if err != nil {
			return nil, err
		}
		trees = append(trees, found...)
	}
	return trees, nil
}

func (i *Inventory) hold(id string, trees []*tree) {
	i.trees = trees
	i.about, i.index = describe(trees, &i.leftOut)
	i.about.ClusterID = id
	i.lists = sync.OnceValue(func() tables { return listed(trees, &i.leftOut) })
	i.relations = sync.OnceValue(func() relations { return relationsOf(trees) })
	i.references = sync.OnceValue(func() []reference { return referencesOf(trees) })
	i.served = sync.OnceValue(func() map[Resource]bool { return discovered(trees, &i.leftOut) })
}

type loader struct {
	path    string
	pack    *packer
	leftOut *omissions
	// kept counts the bytes of all paths.
	kept  *int
	files []*file
	read  map[string]*file
	// missing are directories of which nothing is read, and links that may lead to directories.
	missing []packaging.Entry
}

func load(ctx context.Context, path string, kept *int, leftOut *omissions) ([]*tree, error) {
	l := &loader{path: path, pack: newPacker(), leftOut: leftOut, kept: kept, read: map[string]*file{}}
	var failed error
	skip := func(entry packaging.Entry) { failed = errors.Join(failed, l.skip(entry)) }
	if err := packaging.Walk(ctx, path, l.visit, skip); err != nil || failed != nil {
		return nil, errors.Join(err, failed)
	}
	trees := plant(path, l.files)
	for _, each := range l.missing {
		if lose(trees, each) || each.Type == packaging.Directory && !strings.Contains("/"+each.Path, "/.") {
			leftOut.add(path+"/"+each.Path, each.Cause)
		}
	}
	return trees, nil
}

func (l *loader) visit(name string, size int64, content io.Reader) error {
	if !layout.Wanted(name) {
		if isArchive(name) {
			l.leftOut.add(l.path+"/"+name, "an archive within the archive is not read: name it by its own --archive")
		}
		return nil
	}
	if size > maxFile {
		return l.lose(name, fmt.Sprintf("it has %d bytes, more than %d", size, maxFile))
	}
	made, cause, err := l.pack.pack(name, content)
	switch {
	case err != nil:
		return err
	case cause != "":
		return l.lose(name, cause)
	}
	return l.keep(made)
}

// lose keeps a file without its content, so that its objects are missing instead of nonexistent.
func (l *loader) lose(name, cause string) error {
	l.leftOut.add(l.path+"/"+name, cause)
	return l.keep(&file{path: name, cause: cause})
}

func (l *loader) keep(made *file) error {
	l.files = append(l.files, made)
	l.read[made.path] = made
	bytes := len(made.path)
	for _, part := range made.packed {
		bytes += len(part)
	}
	return l.count(bytes)
}

func (l *loader) count(bytes int) error {
	if *l.kept += bytes; *l.kept > maxPacked {
		return fmt.Errorf("the archive %s cannot be read: its objects are larger than %d bytes after compression", l.path, maxPacked)
	}
	return nil
}

// skip states what is missing with an entry that is not read. A hard link has the content of the file
// that it names.
func (l *loader) skip(entry packaging.Entry) error {
	switch target := l.read[entry.Target]; {
	case entry.Type == packaging.Directory, entry.Type == packaging.SymbolicLink && !layout.Wanted(entry.Path):
		l.missing = append(l.missing, entry)
		return l.count(len(entry.Path))
	case !layout.Wanted(entry.Path):
		return nil
	case entry.Type == packaging.HardLink && target != nil && target.cause == "":
		return l.keep(&file{path: entry.Path, packed: target.packed, size: target.size})
	}
	return l.lose(entry.Path, entry.Cause)
}

// isArchive reports whether a file in an archive has the name of one with objects. The archives of
// the insights-operator in a must-gather have none that it lacks.
func isArchive(name string) bool {
	for _, extension := range []string{".tar", ".tar.gz", ".tgz", ".tar.xz", ".zip"} {
		if strings.HasSuffix(name, extension) {
			return !strings.Contains("/"+name, "/insights-data/")
		}
	}
	return false
}

func plant(path string, files []*file) []*tree {
	names := make([]string, 0, len(files))
	for _, found := range files {
		names = append(names, found.path)
	}
	var trees []*tree
	for _, root := range layout.Roots(names) {
		title := path
		if root.Dir != "" {
			title += "/" + root.Dir
		}
		trees = append(trees, &tree{
			root: root, title: title, files: map[string]*file{}, places: map[Resource][]*file{},
			hidden: map[string]string{},
		})
	}
	slices.SortStableFunc(trees, func(a, b *tree) int { return len(b.root.Dir) - len(a.root.Dir) }) // a tree can be in another
	for _, found := range files {
		for _, tree := range trees {
			if below, ok := tree.root.Below(found.path); ok {
				tree.add(below, found)
				break
			}
		}
	}
	return trees
}

func (t *tree) pathOf(found *file) string {
	below, _ := t.root.Below(found.path)
	return t.title + "/" + below
}

func (t *tree) add(below string, found *file) {
	t.files[below] = found
	place, ok := t.root.Place(below)
	if !ok {
		return
	}
	found.place = place
	key := Resource{place.Group, place.Resource}
	t.places[key] = append(t.places[key], found)
}

// omissions are the files that could not be read, with the cause.
type omissions struct {
	mutex sync.Mutex
	lines []string
	// more are digests of the lines after the last one that is kept.
	more map[[sha256.Size]byte]bool
}

func (o *omissions) add(path, cause string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	line := words.Line(path+": "+cause, 1<<10)
	switch {
	case slices.Contains(o.lines, line):
	case len(o.lines) < maxLeftOut:
		o.lines = append(o.lines, line)
	default:
		if o.more == nil {
			o.more = map[[sha256.Size]byte]bool{}
		}
		o.more[sha256.Sum256([]byte(line))] = true
	}
}

// omitted counts those that are not kept.
func (o *omissions) omitted() int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return len(o.more)
}

func (o *omissions) all() []string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Clone(o.lines)
}

func choose(trees []*tree, paths int, leftOut *omissions) (string, []*tree, error) {
	trees, unread := separate(trees)
	clusters := map[string][]*tree{}
	var ids []string
	for _, tree := range trees {
		id := tree.clusterID()
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		clusters[id] = append(clusters[id], tree)
	}
	if len(ids) > 1 { // of a dump of HyperShift, the guest
		hosted := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !clusters[id][0].hosted() })
		if len(hosted) == 1 {
			ids = hosted
			leftOut.add(trees[len(trees)-1].title, "the objects of the management cluster do not belong to the hosted cluster")
		}
	}
	for _, tree := range unread {
		leftOut.add(tree.title, "it is not known to belong to the cluster: "+tree.unreadVersion())
	}
	if len(ids) == 0 && len(unread) == 0 && isCollection(trees) { // of a cluster that is not OpenShift
		return "", trees, nil
	}
	switch len(ids) {
	case 0:
		return "", nil, fmt.Errorf("no cluster was found: no file contains a ClusterVersion; found: %s", titles(append(trees, unread...)))
	case 1:
	default:
		var found []string
		for _, id := range ids {
			found = append(found, fmt.Sprintf("cluster %s in %s", id, titles(clusters[id])))
		}
		return "", nil, fmt.Errorf("several clusters were found: %s; name the directory of one, which may be within the file of an archive",
			words.Clauses(found, maxLeftOut))
	}
	return ids[0], addNameless(clusters[ids[0]], clusters[""], paths, leftOut), nil
}

// separate separates the trees whose ClusterVersion is there and cannot be read: they may be of
// another cluster than the others.
func separate(trees []*tree) (known, unread []*tree) {
	for _, tree := range trees {
		if tree.unreadVersion() != "" && tree.clusterID() == "" {
			unread = append(unread, tree)
			continue
		}
		known = append(known, tree)
	}
	return known, unread
}

func addNameless(chosen, nameless []*tree, paths int, leftOut *omissions) []*tree {
	for _, tree := range nameless {
		if chosen[0].hosted() || tree.hosted() || strings.Contains(tree.root.Dir, "external-infra-clusters") {
			leftOut.add(tree.title, "it is not known to belong to the cluster")
			continue
		}
		tree.extra = paths == 1
		chosen = append(chosen, tree)
	}
	return chosen
}

// isCollection reports whether "oc preflight collect" wrote the only tree.
func isCollection(trees []*tree) bool {
	return len(trees) == 1 && trees[0].files[CollectionFile] != nil
}

// hosted reports whether the tree is a guest's in a dump of HyperShift.
func (t *tree) hosted() bool { return strings.Contains("/"+t.root.Dir, "/hostedcluster-") }

func titles(trees []*tree) string {
	var names []string
	for _, tree := range trees {
		names = append(names, fmt.Sprintf("%s (%s)", tree.title, tree.root.Kind))
	}
	if len(names) == 0 {
		return "no objects"
	}
	return words.Clauses(names, maxLeftOut)
}

// About is the identity of the archive. Files that turn out to be unreadable when they are first
// needed are in it, too.
func (i *Inventory) About() About {
	about := i.about
	about.LeftOut, about.LeftOutMore = i.leftOut.all(), i.leftOut.omitted()
	return about
}

// Text returns the content of the first of these files that a tree contains, by its path in the tree, and its
// name; empty if there is none. If a file exists and none can be read, the error says why.
func (i *Inventory) Text(names ...string) (name, text string, err error) {
	for _, name := range names {
		for _, tree := range i.trees {
			text, cause := tree.read(name)
			if text != "" {
				return name, text, nil
			}
			if cause = cmp.Or(cause, tree.unread(name)); cause != "" && err == nil {
				err = fmt.Errorf("the file %s of the archive cannot be read: %s", name, cause)
			}
		}
	}
	return "", "", err
}

// unread is why a file has no text; empty where the tree does not have it.
func (t *tree) unread(name string) string {
	if found := t.files[name]; found != nil {
		return cmp.Or(found.cause, "it is empty")
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if cause := t.hidden[dir]; cause != "" {
			return dir + ": " + cause
		}
	}
	return ""
}

// Collection is the record of "oc preflight collect"; the zero value if another program wrote the archive.
func (i *Inventory) Collection() Collection { return i.index }

// Resources returns the resources for which the archive contains files, sorted.
func (i *Inventory) Resources() []Resource {
	found := map[Resource]bool{}
	for _, tree := range i.trees {
		for key := range tree.places {
			found[key] = tree.root.Kind != layout.Lists || found[key]
		}
	}
	for key, t := range i.lists() {
		found[key] = found[key] || len(t.entries) > 0
	}
	maps.DeleteFunc(found, func(_ Resource, has bool) bool { return !has })
	return slices.SortedFunc(maps.Keys(found),
		func(a, b Resource) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name)) })
}
