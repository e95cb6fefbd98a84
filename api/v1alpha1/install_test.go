package v1alpha1_test
import "testing"
func TestInstall(t *testing.T) { apiServer(t) }
