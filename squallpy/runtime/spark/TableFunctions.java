package squallpy;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.python.UserDefinedPythonTableFunction;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Extension of Spark's sessions: the table functions of squallpy, in Python. Its jar, which sql_extension.py writes, has
 * each pickled, under its name. NB: compiled by Janino, which knows neither lambdas nor generics of methods.
 */
public class TableFunctions extends AbstractFunction1 {
    private static final int SQL_TABLE_UDF = 300; // of pyspark.util.PythonEvalType

    public Object apply(Object extensions) {
        String[] names = new String(read("names")).split(" ");
        for (int i = 0; i < names.length; i++) {
            ExpressionInfo info = new ExpressionInfo("squallpy.TableFunctions", names[i]);
            Builder builder = new Builder(names[i]);
            ((SparkSessionExtensions) extensions).injectTableFunction(
                new Tuple3(new FunctionIdentifier(names[i]), info, builder));
        }
        return BoxedUnit.UNIT;
    }

    static byte[] read(String name) {
        try {
            InputStream in = TableFunctions.class.getResourceAsStream("/squallpy/" + name);
            try {
                return in.readAllBytes();
            } finally {
                in.close();
            }
        } catch (IOException error) {
            throw new RuntimeException(error);
        }
    }

    public static class Parser extends AbstractFunction0 {
        public Object apply() {
            return SparkSession.active().sessionState().sqlParser();
        }
    }

    /** Arguments of a call → its plan. */
    public static class Builder extends AbstractFunction1 {
        private final String name;

        public Builder(String name) {
            this.name = name;
        }

        public Object apply(Object arguments) {
            String python = System.getenv("PYSPARK_PYTHON");
            SimplePythonFunction function = new SimplePythonFunction(
                TableFunctions.read(this.name), new HashMap(), new ArrayList(), python == null ? "python3" : python,
                new String(TableFunctions.read("version")), new ArrayList(), null);
            return new UserDefinedPythonTableFunction(this.name, function, SQL_TABLE_UDF, false)
                .builder((Seq) arguments, new Parser());
        }
    }
}
