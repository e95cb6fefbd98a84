package crd_test

import (
	"io/fs"
	"os"
	"path"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/config/crd"
)

// TestBases shows that every generated definition is in the program, whole, under
// the name that its group and plural give it.
func TestBases(t *testing.T) {
	onDisk, err := fs.Glob(os.DirFS("."), "bases/*.yaml")
	if err != nil || len(onDisk) == 0 {
		t.Fatalf("bases holds no definition: %v", err)
	}
	for _, file := range onDisk {
		data, err := crd.Bases.ReadFile(file)
		if err != nil {
			t.Errorf("%s is not in the program: %v", file, err)
			continue
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &definition); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		want := definition.Spec.Group + "_" + definition.Spec.Names.Plural + ".yaml"
		if got := path.Base(file); got != want {
			t.Errorf("%s holds the definition for %s", got, want)
		}
	}
}
