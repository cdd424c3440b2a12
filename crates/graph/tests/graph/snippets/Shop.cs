using System; using A = B.C;
namespace Ex.App {
  /// <summary>Doc</summary>
  public class F : Base, IFoo {
    private Svc _svc = new Svc();
    public int Prop { get; set; }
    public F(int a) : base(a) { _svc.Go(); }
    public async Task<int> Run<T>(string s) { Helper(s); this.Prop = 1; var x = new Foo(); x.Bar(); Other.Stat(); int L(int q) => q; return L(1); }
    [Fact] public void T1() { Run("a"); }
    public delegate void D(int a);
    public event EventHandler Ev;
  }
  public interface IFoo { void M(); }
  public struct S { public int X; }
  public enum E { A, B }
  public record R(int X);
}
