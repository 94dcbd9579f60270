package release

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// defaultBaseBytes is the size of the base layer of a release without BaseLayers.
const defaultBaseBytes = 1024

// baseLayers returns the layers below the manifests, each with one file of reproducible
// pseudo-random content.
func (r Release) baseLayers(architecture string) ([]v1.Layer, error) {
	sizes := r.BaseLayers
	if len(sizes) == 0 {
		sizes = []int{defaultBaseBytes}
	}
	var layers []v1.Layer
	for i, size := range sizes {
		path := fmt.Sprintf("usr/lib/%s/base-%d", architecture, i)
		layer, err := newLayer(map[string]File{path: {Data: noise(path, size)}})
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// padding returns a manifest of about size bytes that is not a preflight. It
// compresses to little more than half, real manifests to less.
func padding(i, size int) string {
	head := fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: padding-%05d
  namespace: openshift-config-managed
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
data:
  noise: `, i)
	rest := max(size-len(head)-1, 2)
	return head + hex.EncodeToString(noise(head, (rest+1)/2))[:rest] + "\n"
}

// noise returns size pseudo-random bytes, which depend on seed only.
func noise(seed string, size int) []byte {
	h := fnv.New64a()
	_, _ = strings.NewReader(seed).WriteTo(h)
	source := rand.New(rand.NewPCG(h.Sum64(), 0)) //nolint:gosec // the bytes must be reproducible
	data := make([]byte, 0, size+7)
	for len(data) < size {
		data = binary.LittleEndian.AppendUint64(data, source.Uint64())
	}
	return data[:size]
}
