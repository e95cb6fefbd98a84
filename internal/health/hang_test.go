package health
import ("testing";"math/rand";"time";"math";"syscall";"fmt";"os";"gonum.org/v1/gonum/mathext")
func cpu() time.Duration { var u syscall.Rusage; syscall.Getrusage(1, &u); return time.Duration(u.Utime.Nano()) }
func TestHang(t *testing.T) {
  r := rand.New(rand.NewSource(2))
  var worst, worst2 time.Duration
  for i := 0; i < 4000; i++ {
    total := math.Pow(10, r.Float64()*15)
    bad := math.Pow(10, r.Float64()*15)
    if bad > total || r.Intn(3)==0 { bad = total*(1-math.Pow(10,-r.Float64()*15)) } 
    if bad < 5 {continue}
    s := cpu(); fmt.Fprintf(os.Stderr, "%v %v\n", bad, total)
    p := LowerBound(bad,total)
    if d:=cpu()-s; d>worst { worst=d; fmt.Println("inv", bad, total, d)}
    s = cpu(); mathext.RegIncBeta(bad,total-bad+1,p*(1+r.NormFloat64()*0.01)*0.999)
    if d:=cpu()-s; d>worst2 { worst2=d; fmt.Println("reg", bad, total, d)}
  }
}
